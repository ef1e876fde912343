"""Pickles are read without `pickle`: plain values as they are, and each opcode that could do more is refused."""

import contextlib
import pickle
import pickletools
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vieval_plugin.errors import VievalError
from vieval_plugin.serve import pickle_values
from vieval_plugin.serve.pickle_values import read_pickle, write_pickle

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64) | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(st.text(), inner, max_size=4)
    ),
    max_leaves=12,
)
READ = {
    "PROTO", "FRAME", "STOP", "MARK", "MEMOIZE", "BINPUT", "LONG_BINPUT", "BINGET", "LONG_BINGET",
    "EMPTY_DICT", "EMPTY_LIST", "EMPTY_TUPLE", "APPEND", "APPENDS", "SETITEM", "SETITEMS",
    "TUPLE", "TUPLE1", "TUPLE2", "TUPLE3", "NONE", "NEWTRUE", "NEWFALSE", "BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT",
    "SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8", "SHORT_BINBYTES", "BINBYTES", "BINBYTES8",
}  # fmt: skip


class Evil:
    def __reduce__(self):
        return (sys.exit, ("ran",))


def depth(value):
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return 1 + max(map(depth, inner), default=0) if isinstance(value, (dict, list, tuple)) else 0


@given(PLAIN, st.sampled_from([3, 4, 5]))
def test_plain_values_come_out_as_they_went_in(value, protocol):
    content = pickle.dumps(value, protocol)
    if depth(value) > 8:
        with pytest.raises(VievalError, match="deep"):
            read_pickle(content)
    else:
        assert repr(read_pickle(content)) == repr(value)


def test_what_stands_in_several_places_is_copied_and_copies_are_counted():
    shared = {"tag": ["x"]}
    found = read_pickle(pickle.dumps([shared] * 3))
    assert found == [shared] * 3
    assert found[0] is not found[1]
    laughs = ["ha"] * 10
    for _ in range(6):
        laughs = [laughs] * 10
    with pytest.raises(VievalError, match="operations"):
        read_pickle(pickle.dumps(laughs))


def test_a_list_within_itself_is_no_endless_one():
    circle = []
    circle.append(circle)
    assert depth(read_pickle(pickle.dumps(circle))) == 2


@given(PLAIN)
def test_what_is_written_is_read_by_pickle(value):
    assert pickle.loads(write_pickle(value)) == value


@pytest.mark.parametrize("opcode", pickletools.opcodes, ids=lambda opcode: opcode.name)
def test_every_opcode_but_those_of_plain_values_is_refused(opcode):
    argument = {
        "stringnl": b"'x'\n", "stringnl_noescape": b"os\n", "stringnl_noescape_pair": b"os\nsystem\n",
        "decimalnl_short": b"1\n", "decimalnl_long": b"1\n", "floatnl": b"1\n", "unicodestringnl": b"x\n",
        "uint1": b"\1", "uint2": b"\1\0", "int4": b"\1\0\0\0", "uint4": b"\1\0\0\0", "uint8": b"\1" + bytes(7), "float8": bytes(8),
        "long1": b"\1\1", "long4": b"\1\0\0\0\1", "string1": b"\1x", "bytes1": b"\1x", "unicodestring1": b"\1x",
        "string4": b"\1\0\0\0x", "bytes4": b"\1\0\0\0x", "unicodestring4": b"\1\0\0\0x",
        "bytes8": b"\1" + bytes(7) + b"x", "bytearray8": b"\1" + bytes(7) + b"x", "unicodestring8": b"\1" + bytes(7) + b"x",
    }.get(opcode.arg.name if opcode.arg else "", b"")  # fmt: skip
    content = b"N(" + opcode.code.encode("latin-1") + argument + b"."
    if opcode.name in READ:
        return
    with pytest.raises(VievalError, match=f"opcode {opcode.name}|no pickle"):
        read_pickle(content)


@pytest.mark.parametrize("protocol", range(6))
def test_objects_are_never_built(protocol):
    for value in (Evil(), {"images": [Evil()]}, np.array(["a"]), np.float64(1), {1, 2}, bytearray(b"x"), print, Evil):
        with pytest.raises(VievalError):
            read_pickle(pickle.dumps(value, protocol))


def test_pickle_itself_reads_nothing_here(monkeypatch):
    def never(*arguments, **options):
        raise AssertionError("pickle was given a body")

    for name in ("load", "loads", "Unpickler", "_Unpickler", "_loads"):
        monkeypatch.setattr(pickle, name, never)
    assert read_pickle(pickle.dumps({"images": [b"x"]})) == {"images": [b"x"]}
    assert not hasattr(pickle_values, "loads")


@pytest.mark.parametrize(
    "content",
    [
        b"", b".", b"N", b"(.", b"N(.", b"NN.", b"0.", b"\x80\x05", b"\x80\xff.",
        b"]" * 10 + b"a" * 9 + b".", b"(" * 1000 + b"t" * 1000 + b".", b")\x85" * 1 + b"\x85" * 20 + b".",
        b"a.", b"Na.", b"]a.", b"s.", b"}Ns.", b"}NNs.", b"}K\x01Ns.", b"}(NNu.", b"u.", b"e.", b"t.",
        b"h\x00.", b"q\x00.", b"\x94.", b"(q\x00h\x00.",
        b"X\xff\xff\xff\x7fx.", b"B\xff\xff\xff\xffx.", b"\x8e\xff\xff\xff\xff\xff\xff\xff\xffx.", b"\x8d\xff\xff\xff\xff\xff\xff\xff\x7fx.",  b"\x8a\xff" + b"\x7f" * 255 + b".", b"X\x02\x00\x00\x00\xff\xff.",
        b"N" * 300_000 + b".", b"L" + b"9" * 100_000 + b"L\n.", b"\x00" * 100, b"PK\x03\x04", b'{"images": []}',
    ],
)  # fmt: skip
def test_what_is_broken_or_lies_is_one_line(content):
    with pytest.raises(VievalError) as error:
        read_pickle(content)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 400


@given(st.binary(max_size=200))
def test_any_bytes_are_a_plain_value_or_one_line(content):
    try:
        value = read_pickle(content)
    except VievalError:
        return
    assert depth(value) <= 8


@given(PLAIN, st.data())
def test_a_pickle_with_a_byte_changed_is_a_plain_value_or_one_line(value, data):
    content = bytearray(pickle.dumps(value, 4))
    content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(VievalError):
        read_pickle(bytes(content))
