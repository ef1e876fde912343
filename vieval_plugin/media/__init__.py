"""Files and images as bytes."""
