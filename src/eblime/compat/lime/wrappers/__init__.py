"""Wrappers of scikit-image, where lime has them."""
