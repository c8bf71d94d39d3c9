"""What every picture of a fitted tree needs: where nodes stand, which colours leaves have."""
