"""Small functions of lime that other code imports."""
