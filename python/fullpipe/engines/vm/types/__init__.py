"""The types of C that a kernel module was compiled with, as its debugging information has them."""
