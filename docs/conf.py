"""Settings of the site: ``python -m sphinx -W --keep-going -j auto docs build/site``.

The pages are the Markdown files of this folder, the tutorial notebook and the scripts of
``examples``. ``site_pages.py`` writes the pages that are made of something else: the API
reference, the benchmarks, and the files of the repository outside this folder.
"""

import sys
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import matplotlib
import site_pages

import bristlecone

matplotlib.use("Agg")
# The HTML of a page is not a place for a forecast of the seconds that a search takes.
warnings.filterwarnings("ignore", category=bristlecone.exceptions.SearchCostWarning)
site_pages.write()

project = "bristlecone"
author = "the bristlecone developers"
copyright = "2026, the bristlecone developers"
version = release = bristlecone.__version__

extensions = [
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_templates", "examples", "**/.ipynb_checkpoints", "gallery/*.ipynb"]
root_doc = "index"

myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 4
# The kernel of the environment that builds the site runs the notebook; an error ends the build.
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 120
# It saves a model.
nb_execution_in_temp = True
nb_merge_streams = True

templates_path = ["_templates"]
autosummary_generate = True
autosummary_ignore_module_all = False
autodoc_typehints = "none"
autodoc_member_order = "alphabetical"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

sphinx_gallery_conf = {
    "examples_dirs": ["examples"],
    "gallery_dirs": ["gallery"],
    "filename_pattern": r"\.py$",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "remove_config_comments": True,
    "min_reported_time": 1e9,
    "write_computation_times": False,
    "show_memory": False,
    "show_signature": False,
    "image_scrapers": ("matplotlib",),
    "backreferences_dir": None,
}

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

html_theme = "pydata_sphinx_theme"
html_title = "bristlecone"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_extra_path = ["report.html"]
html_show_sourcelink = False
# Pages without pages below them need no navigation.
html_sidebars = {"install": [], "tutorial": []}
html_theme_options = {
    "icon_links": [
        {"name": "Source", "url": site_pages.REPOSITORY, "icon": "fa-brands fa-github"},
    ],
    "header_links_before_dropdown": 7,
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
}


def setup(app):
    """Connect what rewrites pages and docstrings while they are read."""
    app.connect("source-read", site_pages.on_read)
    app.connect("autodoc-skip-member", site_pages.on_member)
    # Before numpydoc, whose priority is 500.
    app.connect("autodoc-process-docstring", site_pages.on_docstring, priority=100)
