import io
import struct
import warnings
import zlib
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from PIL import Image
from scipy import ndimage
from skimage import data

import eblime
from eblime.domains.image.photo import PHOTO_ENDINGS, open_photo, read_photo
from eblime.domains.image.scene import SEGMENTATIONS, SEGMENTER, as_pixels, read_image
from eblime.domains.readers import read_scan


def photo(height=60, width=80):
    """A real photo, small."""
    return data.astronaut()[::6, ::6][:height, :width].copy()


def layouts():
    """Grey, RGB, RGBA, many channels, channel-first; whole numbers, floats and booleans."""
    rgb = photo()
    yield "grey uint8", rgb[..., 0]
    yield "rgb uint8", rgb
    yield "rgb not contiguous", rgb[:, ::-1]
    yield "rgba uint8", np.dstack([rgb, np.full(rgb.shape[:2], 255, np.uint8)])
    yield "channel-first uint8", rgb.transpose(2, 0, 1)
    yield "one channel first", rgb[None, ..., 0]
    yield "seven channels", np.dstack([rgb, rgb, rgb[..., :1]])
    yield "seven channels first", np.dstack([rgb, rgb, rgb[..., :1]]).transpose(2, 0, 1)
    yield "float32", (rgb / 255).astype(np.float32)
    yield "float64 standardised", (rgb - 127.0) / 60
    yield "float16", (rgb / 255).astype(np.float16)
    yield "uint16", rgb.astype(np.uint16) * 256
    yield "bool", rgb[..., 0] > 100


LAYOUTS = dict(layouts())


def literal(scene, masks):
    """The simplest way to render."""
    shown = masks[:, scene.labels] > 0.5
    if scene.channel_axis == 2:
        shown = shown[..., None]
    elif scene.channel_axis == 0:
        shown = shown[:, None]
    return np.where(shown, scene.shown, scene.hidden)


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("hide", ["mean", "blur", 0])
def test_rendering_equals_the_simple_version(rng, name, hide):
    """For every layout and dtype, bit for bit; only the batch is written."""
    image = LAYOUTS[name]
    before = image.copy()
    scene = read_image(image, segmentation="grid", hide=hide)
    masks = rng.integers(0, 2, size=(6, scene.n_features)).astype(float)
    batch = scene.batch(6)
    scene.renderer().render(masks, batch)

    assert batch.shape == (6, *image.shape)
    assert batch.dtype == image.dtype
    assert_array_equal(batch, literal(scene, masks))
    assert_array_equal(image, before)
    scene.renderer().render(np.ones((1, scene.n_features)), batch[:1])
    assert_array_equal(batch[0], image)


@pytest.mark.parametrize("name", SEGMENTATIONS)
@pytest.mark.parametrize("layout", ["grey uint8", "rgb uint8", "rgba uint8", "channel-first uint8"])
def test_segments_are_numbered_from_zero(name, layout):
    """Every segmentation of every layout has labels 0 .. p - 1, the last one included."""
    scene = read_image(LAYOUTS[layout], segmentation=name, hide="mean")

    assert scene.labels.shape == (60, 80)
    assert_array_equal(np.unique(scene.labels), np.arange(scene.n_features))
    assert scene.n_features >= 2
    assert len(scene.features) == scene.n_features
    hidden_last = np.ones((1, scene.n_features))
    hidden_last[0, -1] = 0
    batch = scene.batch(1)
    scene.renderer().render(hidden_last, batch)
    assert not np.array_equal(batch[0], scene.shown)


def test_segmentations_take_parameters():
    """The number of superpixels is about the requested one."""
    few = read_image(photo(), segmentation=("slic", {"n_segments": 8}), hide=0).n_features
    many = read_image(photo(), segmentation=("slic", {"n_segments": 90}), hide=0).n_features

    assert few < 15 < 60 < many
    assert (
        read_image(photo(), segmentation=("grid", {"rows": 2, "columns": 3}), hide=0).n_features
        == 6
    )


@pytest.mark.parametrize("grey", [data.coins()[::2, ::2], data.coins()[::2, ::2, None] / 255])
def test_a_grey_image_is_cut_as_the_same_pixels_in_colour(grey):
    """Contours, not a lattice: the same superpixels as for three equal channels."""
    stacked = grey.reshape(*grey.shape[:2], 1)
    labels = SEGMENTER.segment(stacked, "slic")

    assert_array_equal(labels, SEGMENTER.segment(np.repeat(stacked, 3, axis=2), "slic"))
    areas = np.bincount(labels.ravel())
    assert areas.std() > 0.1 * areas.mean()


def test_contours_are_followed_in_images_of_any_number_of_channels():
    """Nearly every pixel is in a superpixel of its own side of a bright square's edge."""
    image = np.zeros((40, 40, 5))
    image[9:26, 11:31] = 1.0
    labels = SEGMENTER.segment(image, ("slic", {"n_segments": 16, "sigma": 0})).ravel()

    bright = np.bincount(labels, weights=image[..., 0].ravel()) / np.bincount(labels)
    assert np.minimum(bright, 1 - bright)[labels].mean() < 0.01


@pytest.mark.parametrize("side", [9, 2000])
def test_the_name_of_a_superpixel_says_where_it_is(side):
    """Also in an image that is looked at coarsely, and if a superpixel is a single pixel."""
    labels = np.arange(side)[:, None] * 3 // side * 3 + np.arange(side) * 3 // side
    labels[1, side - 2] = 9
    image = np.random.default_rng(0).random((side, side))
    scene = read_image(image, segmentation=labels, hide=0)

    assert scene.features[0] == "superpixel 0, upper left"
    assert [name.split(", ")[1] for name in scene.features[1:]] == [
        *("top", "upper right", "left", "centre", "right"),
        *("lower left", "bottom", "lower right", "upper right"),
    ]


def test_labels_of_any_numbers_are_renumbered():
    """Labels that start at -5 and booleans become 0 .. p - 1."""
    labels = np.full((60, 80), -5)
    labels[:, 40:] = 7
    scene = read_image(photo(), segmentation=labels, hide=0)

    assert_array_equal(np.unique(scene.labels), [0, 1])
    assert read_image(photo(), segmentation=labels > 0, hide=0).n_features == 2
    assert read_image(photo(), segmentation=lambda picture: labels, hide=0).n_features == 2


def test_a_large_photo_is_segmented_on_a_smaller_copy():
    """Labels have full size; a user's function gets the full image."""
    large = photo().repeat(30, axis=0).repeat(30, axis=1)
    seen = []

    def spy(picture):
        seen.append(picture.shape)
        return SEGMENTATIONS["grid"](picture)

    scene = read_image(large, segmentation="slic", hide=0)
    SEGMENTER.segment(large, spy)

    assert scene.labels.shape == large.shape[:2] == (1800, 2400)
    assert 10 < scene.n_features < 120
    assert seen == [(1800, 2400, 3)]  # a user's function gets the full image


def test_a_superpixel_is_hidden_by_its_own_mean_colour():
    """The mean is rounded to the image's dtype."""
    image = photo()
    scene = read_image(image, segmentation="grid", hide="mean")
    for j in (0, 17, scene.n_features - 1):
        inside = scene.labels == j
        expected = np.rint(image[inside].mean(axis=0))
        assert_array_equal(scene.hidden[inside], np.broadcast_to(expected, (inside.sum(), 3)))


def test_other_ways_to_hide():
    """A colour, another image, a function of the image."""
    image = photo()
    assert (read_image(image, segmentation="grid", hide=(9, 8, 7)).hidden == [9, 8, 7]).all()
    background = image[::-1]
    assert_array_equal(read_image(image, segmentation="grid", hide=background).hidden, background)
    inverted = read_image(image, segmentation="grid", hide=lambda x: 255 - x.astype(int)).hidden
    assert_array_equal(inverted, 255 - image)
    grey = read_image(image[..., 0], segmentation="grid", hide=image[..., 1])
    assert_array_equal(grey.hidden, image[..., 1])
    blurred = read_image(image, segmentation="grid", hide="blur").hidden
    assert blurred.std() < image.std()


def test_a_channel_first_image_takes_a_channel_first_background():
    """The background has the layout of the image."""
    image = photo().transpose(2, 0, 1)
    scene = read_image(image, segmentation="grid", hide=np.ascontiguousarray(image[:, ::-1]))

    assert_array_equal(scene.hidden, image[:, ::-1])


def test_torch_tensors_are_images():
    """Also with a gradient, in bfloat16, and as a channel-first background."""
    torch = pytest.importorskip("torch")
    image = torch.rand(3, 20, 30, requires_grad=True)
    scene = read_image(image, segmentation="grid", hide=torch.zeros(3, 20, 30))

    assert_array_equal(scene.shown, image.detach().numpy())
    assert not scene.hidden.any()
    assert read_image(image.bfloat16(), segmentation="grid", hide=0).shown.dtype == np.float32


def test_whole_numbers_up_to_one_are_colours_of_an_integer_image():
    """Only fractions are refused, and only where the image has larger numbers."""
    assert (read_image(photo(), segmentation="grid", hide=1).hidden == 1).all()
    dark = (photo() > 128).astype(np.uint8)
    assert not read_image(dark, segmentation="grid", hide=0.2).hidden.any()


def test_the_blurred_copy_of_a_nearly_black_image_may_have_fractions():
    """Its numbers are in the range of the image; a single colour of 0 to 1 is still refused."""
    image = np.zeros((30, 30), np.uint8)
    image[10, 10] = 100
    blur = lambda pixels: ndimage.gaussian_filter(pixels.astype(float), 8)  # noqa: E731

    assert read_image(image, segmentation="grid", hide=blur).hidden.max() <= 1
    with pytest.raises(ValueError, match=r"range of the image of uint8, 0 to 100; got 0\.5"):
        read_image(image, segmentation="grid", hide=0.5)


def test_large_black_and_white_images_are_segmented():
    """Means of blocks are not rounded to the image's dtype."""
    stripes = np.zeros((1100, 1100), np.uint8)
    stripes[:, ::3] = 1
    stripes[:500] = 0

    assert read_image(stripes, segmentation="slic", hide=7).n_features > 1
    assert read_image(stripes > 0, segmentation="felzenszwalb", hide=1).n_features > 1


def test_labels_of_any_size():
    """Unsigned, negative and very different labels."""
    labels = np.zeros((60, 80), np.uint64)
    labels[:, 40:] = 2**64 - 1
    wide = np.full((60, 80), np.iinfo(np.int64).min)
    wide[:, 40:] = np.iinfo(np.int64).max

    assert read_image(photo(), segmentation=labels, hide=0).n_features == 2
    assert read_image(photo(), segmentation=wide, hide=0).n_features == 2


def test_files_and_pil_images(tmp_path):
    """Paths and PIL images are read, rotated, and converted from palettes to colours."""
    image = photo()
    path = tmp_path / "photo.png"
    Image.fromarray(image).save(path)
    rotated = tmp_path / "rotated.jpg"
    exif = Image.Exif()
    exif[0x0112] = 6  # the camera was held on its side
    Image.fromarray(image).save(rotated, exif=exif)

    assert_array_equal(read_image(str(path), segmentation="grid", hide=0).shown, image)
    assert_array_equal(read_image(path, segmentation="grid", hide=0).shown, image)
    assert_array_equal(read_image(Image.fromarray(image), segmentation="grid", hide=0).shown, image)
    assert read_image(rotated, segmentation="grid", hide=0).shown.shape == (80, 60, 3)
    palette = Image.fromarray(image).convert("P")
    assert read_image(palette, segmentation="grid", hide=0).shown.shape == (60, 80, 3)


NAN = np.full((8, 8), 0.5)
NAN[3, 2] = np.nan
REFUSED = [
    (np.zeros(5), {}, ValueError, r"one image of shape.*got shape \(5,\)"),
    (np.zeros((2, 8, 8, 3)), {}, ValueError, r"one image of shape.*got shape \(2, 8, 8, 3\)"),
    (np.zeros((0, 8)), {}, ValueError, r"one image of shape"),
    (np.array([["a"]]), {}, TypeError, r"array of numbers"),
    (np.ones((8, 8), complex), {}, TypeError, r"array of numbers.*`np.abs\(image\)`"),
    (np.zeros((1, 3, 8, 8)), {}, ValueError, r"Pass `image\[0\]`, without the batch axis"),
    (np.ma.masked_greater(photo(), 200), {}, ValueError, r"no masked numbers; got \d+"),
    (NAN, {}, ValueError, r"`image` must be finite; got nan at \(3, 2\)"),
    (np.full((8, 8, 3), 7, np.uint8), {}, ValueError, "The image must vary"),
    (np.zeros((130, 140, 32)), {}, ValueError, "The image must vary"),
    (np.full((8, 8, 2), [1.0, 2.0]), {}, ValueError, "all of it is the same"),
    (
        np.full((8, 8, 3), 7, np.uint8),
        {"segmentation": "grid", "hide": "mean"},
        ValueError,
        r"Hiding must change the image",
    ),
    (photo(), {"segmentation": "snake"}, ValueError, r"`segmentation` must be one of 'slic'"),
    (
        photo(),
        {"segmentation": ("slic", {"n": 3})},
        ValueError,
        "'slic' failed with the parameters",
    ),
    (photo().astype(np.float16), {"hide": 1e6}, ValueError, r"for the image of float16"),
    (
        photo(),
        {"segmentation": ("slic", {"n_segments": 0})},
        ValueError,
        r"'slic' failed with the parameters \{'n_segments': 0\}: ZeroDivisionError",
    ),
    (photo(), {"segmentation": ("slic",)}, TypeError, r"\(name, \{parameter: value\}\)"),
    (
        photo(),
        {"segmentation": np.zeros((60, 80), int)},
        ValueError,
        r"at least 2 superpixels; got 1",
    ),
    (
        photo(),
        {"segmentation": np.zeros((6, 8), int)},
        ValueError,
        r"shape \(60, 80\); got \(6, 8\)",
    ),
    (photo(), {"segmentation": np.zeros((60, 80))}, TypeError, r"whole numbers; got dtype float64"),
    (
        photo(),
        {"hide": "black"},
        ValueError,
        r"`hide` must be one of 'auto', 'mean', 'blur'; got 'black'",
    ),
    (photo(), {"hide": (1, 2)}, ValueError, r"one for each of the 3 channels"),
    (photo(), {"hide": 300}, ValueError, r"between 0 and 255 for the image of uint8; got 300"),
    (
        photo(),
        {"hide": np.zeros((5, 5, 3))},
        ValueError,
        r"the shape of the explained image, \(60, 80, 3\)",
    ),
    (
        photo() / 255,
        {"hide": (124, 116, 104)},
        ValueError,
        r"range of the image of float64, 0 to 1; got 104 to 124. Multiply or divide",
    ),
    (photo(), {"hide": (0.49, 0.45, 0.41)}, ValueError, r"0 to 255; got 0.41 to 0.49"),
    (photo(), {"hide": lambda x: x / 255}, ValueError, r"0 to 255; got 0 to 1\. Multiply"),
    (photo(), {"hide": None}, TypeError, r"`hide` must be 'auto', 'mean', 'blur', a number"),
    (photo() / 255, {"hide": np.nan}, ValueError, r"must be finite"),
    (np.zeros((30, 40, 35)), {}, ValueError, r"channel axis of the image of shape .* is not clear"),
]


@pytest.mark.parametrize(("image", "change", "error", "message"), REFUSED)
def test_bad_images_and_settings_are_refused(image, change, error, message):
    """The message says what must hold and what was passed."""
    with pytest.raises(error, match=message):
        eblime.ImageExplainer(len, **{"hide": 0, **change}).explain(image)


def test_superpixels_of_one_pixel_are_named_as_the_reason():
    """Their mean is the pixel itself, so that another way to hide is not the advice."""
    small = photo()[:8, :8, 0]
    with pytest.raises(ValueError, match=r"Cut it into fewer: all superpixels are single numbers"):
        eblime.ImageExplainer(len, hide="mean").explain(small)


def test_the_channel_axis_can_be_set():
    """For shapes in which it is not clear."""
    cube = np.random.default_rng(0).random((30, 40, 35))

    assert read_image(cube, segmentation="grid", hide=0, channels="first").labels.shape == (40, 35)
    assert read_image(cube, segmentation="grid", hide=0, channels="last").labels.shape == (30, 40)


def test_superpixels_of_one_colour_stay_unchanged_by_their_mean():
    """An image with some constant superpixels can still be explained."""
    image = photo()
    image[:20] = 5
    scene = read_image(image, segmentation="grid", hide="mean")

    assert_allclose(scene.hidden[:5], 5)


def rotated_file(image, kind):
    """A file in memory whose EXIF data says that the camera was held on its side."""
    exif = Image.Exif()
    exif[0x0112] = 6
    file = io.BytesIO()
    image.save(file, kind, exif=exif)
    file.seek(0)
    return file


def test_pil_images_and_open_files_are_rotated():
    """The rotation in the EXIF data is applied."""
    wanted = np.rot90(photo(), -1)

    with Image.open(rotated_file(Image.fromarray(photo()), "PNG")) as opened:
        assert_array_equal(read_image(opened, segmentation="grid", hide=0).shown, wanted)
        assert_array_equal(read_photo(opened).pixels, wanted)
    file = rotated_file(Image.fromarray(photo()), "PNG")
    assert_array_equal(read_image(file, segmentation="grid", hide=0).shown, wanted)


@pytest.mark.parametrize("kind", ["TIFF", "GIF"])
def test_photos_of_several_pages_are_refused(tmp_path, kind):
    """By every reader; one page of them can be passed."""
    pages = [Image.fromarray(photo()), Image.fromarray(255 - photo())]
    path = tmp_path / f"pages.{kind.lower()}"
    pages[0].save(path, save_all=True, append_images=pages[1:])

    for read in (open_photo, read_photo):
        with pytest.raises(ValueError, match=r"pages.* must have one page; got 2"):
            read(path)
    with Image.open(path) as opened:
        with pytest.raises(ValueError, match="one page; got 2"):
            read_image(opened, segmentation="grid", hide=0)
        opened.seek(1)
        assert read_image(opened.copy(), segmentation="grid", hide=0).n_features == 49


def test_a_smaller_copy_inside_a_file_is_not_a_page(tmp_path):
    """Photos of phones contain previews."""
    both, preview = io.BytesIO(), Image.fromarray(photo()[::2, ::2])
    Image.fromarray(photo()).save(both, "MPO", save_all=True, append_images=[preview])

    assert open_photo(both).size == (80, 60)


def deep_png(pixels):
    """A PNG file of 16 bits per channel, which Pillow cannot write."""
    height, width = pixels.shape[:2]
    rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in pixels)

    def chunk(kind, content):
        check = struct.pack(">I", zlib.crc32(kind + content))
        return struct.pack(">I", len(content)) + kind + content + check

    head = struct.pack(">IIBBBBB", width, height, 16, 2, 0, 0, 0)
    parts = chunk(b"IHDR", head), chunk(b"IDAT", zlib.compress(rows)), chunk(b"IEND", b"")
    return io.BytesIO(b"\x89PNG\r\n\x1a\n" + b"".join(parts))


def test_colours_of_16_bits_come_with_a_warning(tmp_path):
    """Pillow keeps the upper 8 bits; grey images keep all 16 and give no warning."""
    deep = photo().astype(np.uint16) * 257
    with pytest.warns(UserWarning, match="has 16 bits per channel and is read with 8"):
        found = read_image(deep_png(deep), segmentation="grid", hide=0)
    assert_array_equal(found.shown, photo())
    Image.fromarray(deep[..., 0]).save(tmp_path / "grey.png")

    grey = read_image(tmp_path / "grey.png", segmentation="grid", hide=0)

    assert_array_equal(grey.shown, deep[..., 0])


def test_files_that_are_not_photos_are_refused(tmp_path):
    """With the name of the file; a missing file raises FileNotFoundError."""
    broken = tmp_path / "broken.png"
    broken.write_bytes(b"not an image")

    with pytest.raises(ValueError, match=r"broken.png' cannot be read"):
        read_image(broken, segmentation="grid", hide=0)
    with pytest.raises(FileNotFoundError):
        read_image(tmp_path / "missing.png", segmentation="grid", hide=0)


def test_only_photo_formats_are_opened(tmp_path, monkeypatch):
    """An EPS file that is named like a photo does not start Ghostscript."""
    from PIL import EpsImagePlugin

    started = []

    def record(*args, **settings):
        started.append(args)
        return Image.new("RGB", (80, 60))

    monkeypatch.setattr(EpsImagePlugin, "Ghostscript", record)
    path = tmp_path / "photo.jpg"
    Image.fromarray(photo()).save(path, "EPS")

    for read in (open_photo, read_photo, as_pixels):
        with pytest.raises(ValueError, match=r"photo.jpg' cannot be read: cannot identify"):
            read(path)
    with (
        path.open("rb") as file,
        pytest.raises(ValueError, match="Supported formats are BMP, GIF, J"),
    ):
        open_photo(file)
    assert started == []


def test_a_photo_that_unpacks_to_too_much_is_refused(tmp_path):
    """By the size in its header, before a pixel is unpacked."""
    header = struct.pack(">IIBBBBB", 40_000, 40_000, 8, 2, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(bytes(1000))), (b"IEND", b"")]
    content = b"\x89PNG\r\n\x1a\n"
    for kind, body in chunks:
        checksum = struct.pack(">I", zlib.crc32(kind + body))
        content += struct.pack(">I", len(body)) + kind + body + checksum
    path = tmp_path / "bomb.png"
    path.write_bytes(content)

    for read in (open_photo, read_photo, as_pixels):
        with pytest.raises(ValueError, match=r"bomb.png' cannot be read: Image size \(16000000"):
            read(path)


def test_a_photo_has_at_most_100_million_pixels(tmp_path, monkeypatch):
    """Its header says how many; not one of them is unpacked."""
    path = tmp_path / "large.png"
    Image.new("1", (10_000, 10_001)).save(path)
    monkeypatch.setattr(Image.Image, "load", lambda image: pytest.fail("unpacked"))
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", None)

    with pytest.raises(ValueError, match=r"at most 100 million pixels; it has 10000 x 10001"):
        open_photo(path)


def test_a_photo_is_copied_only_where_it_must_be():
    """A large one would take several times its own memory."""
    for mode in ("L", "RGB", "I;16", "F"):
        image = Image.new(mode, (8, 6))
        assert open_photo(image) is image
    image = Image.new("RGB", (8, 6))
    image.getexif()[0x0112] = 6
    assert open_photo(image).size == (6, 8)


@pytest.mark.parametrize("ending", [end for end in PHOTO_ENDINGS if end != ".dcm"])
def test_every_photo_ending_can_be_read(tmp_path, ending):
    """The formats that are opened are those of the endings."""
    path = tmp_path / f"photo{ending}"
    Image.fromarray(photo()).save(path)

    assert read_photo(path).pixels.shape == (60, 80, 3)


def test_warnings_about_photos_point_at_the_caller():
    """However deep in the library the photo is read."""
    explainer = eblime.ImageExplainer(lambda b: b.mean((1, 2, 3)), segmentation="grid", n_masks=60)
    with pytest.warns(UserWarning, match="has 16 bits per channel") as caught:
        explainer.explain(deep_png(photo().astype(np.uint16) * 257))

    assert caught[0].filename == __file__


class Scaling:
    """A model that divides uint8 images by 255, as `TorchModel` and `OnnxModel` do."""

    scales_uint8 = True

    def __call__(self, batch):
        """Mean of each image."""
        return batch.mean(axis=(1, 2, 3))


def test_floats_up_to_255_come_with_a_warning():
    """For models that scale only uint8 images, not for functions."""
    floats = photo().astype(np.float32)
    explainer = eblime.ImageExplainer(Scaling(), segmentation="grid", n_masks=60)
    with pytest.warns(UserWarning, match=r"image of float32 has numbers from 0 to 255"):
        explainer.explain(floats)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for fine in (photo(), floats / 255, (floats - 120) / 60):
            explainer.explain(fine)
        eblime.ImageExplainer(lambda b: b.mean((1, 2, 3)), segmentation="grid", n_masks=60).explain(
            floats
        )


def deep_grey(folder, bits):
    """A grey image of some bits as uint8, and with 16 bits in an array and in two files."""
    small = photo()[..., 0].copy()
    small[0, :2] = 0, 255
    deep = (small.astype(np.int64) * ((1 << bits) - 1) // 255).astype(np.uint16)
    for ending in ("png", "tif"):
        Image.fromarray(deep).save(folder / f"deep.{ending}")
    return small, deep, [deep, folder / "deep.png", str(folder / "deep.tif")]


class Grey:
    """A network of grey images that takes 0 to 1, as `TorchModel` does; it fails on others."""

    scales_uint8 = True

    def __call__(self, batch):
        """Mean of each image, (n, H, W)."""
        floats = batch / 255 if batch.dtype == np.uint8 else batch
        assert floats.max() <= 1
        return floats.mean(axis=(1, 2))


@pytest.mark.parametrize(("bits", "settings"), [(16, {"bits": 16}), (12, {"bits": 12})])
def test_bits_are_a_rule_for_arrays_and_files(tmp_path, bits, settings):
    """All of them become the same floats from 0 to 1; `window` says it with two numbers."""
    small, deep, sources = deep_grey(tmp_path, bits)
    largest = (1 << bits) - 1
    for made in (settings, {"window": (0, largest)}):
        explainer = eblime.ImageExplainer(Grey(), segmentation="grid", n_masks=60, **made)
        for source in sources:
            e = explainer.explain(source)
            assert e.scene.shown.dtype == np.float32
            assert_allclose(e.scene.shown, deep / largest, atol=1e-7)
            assert e.provenance["input"]["pixels"] == f"0 to {largest} as 0 to 1"
    wanted = eblime.ImageExplainer(Grey(), segmentation="grid", n_masks=60).explain(small)
    assert e.prediction == pytest.approx(wanted.prediction, abs=1e-3)


def test_images_of_8_bits_have_no_more():
    """They would become dark: 255 of 4095."""
    explainer = eblime.ImageExplainer(Grey(), segmentation="grid", n_masks=60, bits=12)
    with pytest.raises(ValueError, match="numbers are uint8 from"):
        explainer.explain(photo()[..., 0])


def test_a_window_clips():
    """Numbers outside become black or white, also of 8 bits."""
    made = {"segmentation": "grid", "n_masks": 60, "window": (50, 150)}
    shown = eblime.ImageExplainer(Grey(), **made).explain(photo()[..., 0]).scene.shown

    assert_allclose(shown, np.clip((photo()[..., 0] - 50.0) / 100, 0, 1), atol=1e-6)


def test_whole_numbers_without_a_depth_are_refused(tmp_path):
    """By a network that takes 0 to 1; the message says what to set."""
    _, deep, sources = deep_grey(tmp_path, 12)
    explainer = eblime.ImageExplainer(Grey(), segmentation="grid", n_masks=60)
    for source in (*sources, deep.astype(np.int64)):  # a file of 16 bits that is dark, too
        with pytest.raises(
            ValueError, match=r"from 0 to 4095\. Set `bits` \(such as 12, .*`window`"
        ):
            explainer.explain(source)
    with pytest.raises(ValueError, match=r"`bits` \(such as 16"):
        explainer.explain(deep * 16)

    _, bright, (_, path, _) = deep_grey(tmp_path, 16)
    assert_allclose(explainer.explain(path).scene.shown, bright / 65535, atol=1e-7)
    kept = eblime.ImageExplainer(lambda b: b.mean((1, 2)), segmentation="grid", n_masks=60)
    assert_array_equal(kept.explain(deep).scene.shown, deep)  # a function gets what there is


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        (
            {"bits": 8},
            ValueError,
            r"8 bits are 0 to 255, and its numbers are uint16 from 0 to 4095",
        ),
        ({"bits": 0}, ValueError, r"`bits` must be >= 1"),
        ({"bits": 12.0}, TypeError, r"`bits` must be a whole number"),
        ({"window": (5, 5)}, ValueError, r"`window` must be two numbers, low < high"),
        ({"window": (0, 1, 2)}, ValueError, r"`window` must be two numbers"),
        ({"window": (0, np.inf)}, ValueError, r"`window` must be two numbers"),
        ({"bits": 12, "window": (0, 1)}, ValueError, r"`bits` and `window` cannot be used tog"),
    ],
)
def test_wrong_depths_are_refused(tmp_path, settings, error, message):
    """The message has the range of the image."""
    _, deep, _ = deep_grey(tmp_path, 12)
    with pytest.raises(error, match=message):
        eblime.ImageExplainer(Grey(), segmentation="grid", n_masks=60, **settings).explain(deep)


def dicom_file(path, pixels, **fields):
    """Write a DICOM file with these pixels, and other fields of its header."""
    pydicom = pytest.importorskip("pydicom")
    meta = pydicom.dataset.FileMetaDataset()
    meta.TransferSyntaxUID = pydicom.uid.ExplicitVRLittleEndian
    meta.MediaStorageSOPClassUID = pydicom.uid.SecondaryCaptureImageStorage
    meta.MediaStorageSOPInstanceUID = pydicom.uid.generate_uid()
    header = pydicom.dataset.Dataset()
    header.file_meta = meta
    if pixels.ndim == 3:
        header.NumberOfFrames = len(pixels)
    header.Rows, header.Columns = pixels.shape[-2:]
    header.SamplesPerPixel, header.PhotometricInterpretation = 1, "MONOCHROME2"
    header.BitsAllocated = header.BitsStored = 8 * pixels.itemsize
    header.PixelRepresentation = int(pixels.dtype.kind == "i")
    for name, value in fields.items():
        setattr(header, name, value)
    header.HighBit = header.BitsStored - 1
    header.PixelData = pixels.tobytes()
    header.save_as(path, enforce_file_format=True)
    return path


def test_dicom_files_know_their_depth(tmp_path):
    """12 bits in 16 are scaled without a word; where low numbers are white, they are inverted."""
    _, deep, _ = deep_grey(tmp_path, 12)
    explainer = eblime.ImageExplainer(Grey(), segmentation="grid", n_masks=60)
    path = dicom_file(tmp_path / "weld.dcm", deep, BitsStored=12)
    e = explainer.explain(path)
    assert_allclose(e.scene.shown, deep / 4095, atol=1e-7)
    assert e.provenance["input"]["pixels"] == "0 to 4095 as 0 to 1"
    assert_allclose(read_photo(path, (60, 80, 1), floats=True).pixels, deep / 4095, atol=1e-7)

    kind = {"BitsStored": 12, "PhotometricInterpretation": "MONOCHROME1"}
    inverted = explainer.explain(dicom_file(tmp_path / "film.dcm", deep, **kind))
    assert_allclose(inverted.scene.shown, 1 - deep / 4095, atol=1e-6)


def test_dicom_files_without_a_depth_in_0_to_1_need_a_window(tmp_path):
    """Numbers that the header shifts, such as those of a CT, are refused without one."""
    path = dicom_file(
        tmp_path / "ct.dcm", photo()[..., 0].astype(np.int16), RescaleSlope=2, RescaleIntercept=-100
    )
    settings = {"segmentation": "grid", "n_masks": 60}
    with pytest.raises(ValueError, match="set `window`"):
        eblime.ImageExplainer(Grey(), **settings).explain(path)
    e = eblime.ImageExplainer(Grey(), window=(-100, 500), **settings).explain(path)

    assert_allclose(e.scene.shown, (2.0 * photo()[..., 0] / 600).clip(0, 1), atol=1e-6)


def test_dicom_files_that_are_not_one_image_are_refused(tmp_path):
    """A file of frames is a volume."""
    frames = np.stack([photo()[..., 0]] * 3)
    path = dicom_file(
        tmp_path / "frames.dcm", frames, SpacingBetweenSlices=2, PixelSpacing=[0.5, 1]
    )
    with pytest.raises(ValueError, match=r"frames.dcm' must have one frame.*`VolumeExplainer`"):
        open_photo(path)
    broken = tmp_path / "broken.dcm"
    broken.write_bytes(b"nothing")
    with pytest.raises(ValueError, match=r"broken.dcm' cannot be read"):
        open_photo(broken)
    with pytest.raises(FileNotFoundError):
        open_photo(tmp_path / "missing.dcm")
    scan = read_scan(path)

    assert_array_equal(scan.values, frames)
    assert (list(scan.spacing), scan.unit) == ([2.0, 0.5, 1.0], "mm")


@pytest.mark.parametrize("colours", [1, 3])
@pytest.mark.parametrize("grey", [True, False])
def test_grey_images_are_blurred_and_others_get_their_mean(grey, colours):
    """By default, in any layout; the provenance has the one that was used."""
    image = photo() if not grey else photo()[..., :1].repeat(3, axis=2)
    image = image[..., 0] if colours == 1 else image
    score = lambda batch: batch.mean(axis=tuple(range(1, batch.ndim)))  # noqa: E731
    used = "blur" if grey or colours == 1 else "mean"
    plain, chosen = (
        eblime.ImageExplainer(score, segmentation="grid", n_masks=60, **hide).explain(image)
        for hide in ({}, {"hide": used})
    )

    assert plain.provenance["input"]["hide"] == used
    assert_array_equal(plain.scene.hidden, chosen.scene.hidden)
    first = np.moveaxis(image, -1, 0) if colours == 3 else image[None]
    moved = eblime.ImageExplainer(score, segmentation="grid", n_masks=60, channels="first")
    assert moved.explain(first).provenance["input"]["hide"] == used


def test_a_spacing_gives_millimetres(tmp_path):
    """In frames, on maps, on pages and in files; without one there are none."""
    image = np.zeros((8, 20))
    image[4:, 10:] = 1
    model = lambda batch: batch[:, 4:, 10:].mean(axis=(1, 2))  # noqa: E731
    cut = {"segmentation": ("grid", {"rows": 2, "columns": 2}), "hide": 0.5}
    e = eblime.ImageExplainer(model, **cut, spacing=(0.5, 0.1), unit="cm").explain(image)
    plain = eblime.ImageExplainer(model, **cut).explain(image)
    details, ax, bare = e.details(), e.plot("map"), plain.plot("map")
    number = next(text for text in ax.texts if text.get_text() == "3")
    loaded = eblime.load(e.save(tmp_path / "e.eblime"))

    for name, wanted in (("centroid", [2.75, 1.45]), ("extent", [2.0, 1.0])):
        found = [details[f"{name}_{axis}_cm"][3] for axis in ("row", "column")]
        assert found == pytest.approx(wanted)
    assert details["area_cm2"] == pytest.approx([2.0] * 4)
    assert [*ax.get_xlim(), *ax.get_ylim()] == pytest.approx([-0.05, 1.95, 3.75, -0.25])
    assert 2 < number.get_position()[1] < 3.5
    assert ax.get_xlabel().startswith("cm")
    assert len(ax.get_yticks()) > 1
    assert not len(bare.get_yticks())
    assert "centre (2.75, 1.45), size 2 x 1 cm" in e.to_html()
    assert not {name for name in plain.details() if "cm" in name or "mm" in name}
    assert loaded.scene.details() == e.scene.details()
    assert eblime.ImageExplainer(model, **cut, spacing=2).explain(image).scene.spacing == [2, 2]
    for wrong in (0, (1, 2, 3), -1.0, np.inf):
        with pytest.raises(ValueError, match="`spacing` must be 2 numbers > 0"):
            eblime.ImageExplainer(model, spacing=wrong)


def test_adapters_declare_whether_they_scale():
    """`scales_uint8` is what the warning depends on."""
    torch = pytest.importorskip("torch")

    def graph(kind):
        output = SimpleNamespace(name="scores", type="tensor(float)")
        return SimpleNamespace(
            get_inputs=lambda: [SimpleNamespace(type=kind)],
            get_outputs=lambda: [output],
            run=lambda names, batch: None,
        )

    assert eblime.TorchModel(torch.nn.Identity()).scales_uint8
    assert eblime.OnnxModel(session=graph("tensor(float)")).scales_uint8
    assert not eblime.OnnxModel(session=graph("tensor(uint8)")).scales_uint8
