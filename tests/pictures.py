"""Files of pictures, in memory."""

import io

import PIL.Image


def encoded(picture: PIL.Image.Image, form: str = "PNG", **options: object) -> bytes:
    """The file of a picture."""
    file = io.BytesIO()
    picture.save(file, form, **options)
    return file.getvalue()


def plain(colour: str | tuple[int, ...], size: tuple[int, int] = (8, 8), form: str = "PNG") -> bytes:
    """The file of a picture of one colour."""
    return encoded(PIL.Image.new("RGB", size, colour), form)
