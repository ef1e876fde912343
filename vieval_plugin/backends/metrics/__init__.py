"""Numbers measured on images: by arithmetic on pixels, and by networks."""
