"""Layout and colours that every picture of a fitted tree shares."""
