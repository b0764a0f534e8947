"""Who holds a lock, as it is written into it: host and number of a process."""

from controller.wire.process import encode_process, process_in


def test_a_process_is_read_as_it_was_written() -> None:
    assert process_in(encode_process("node-1", 4711)) == ("node-1", 4711)
    for value in (b"", b"{}", b"[]", b'{"host":"","process":1}', b'{"host":"node-1","process":-1}'):
        assert process_in(value) == ("", 0), value


def test_a_process_takes_4096_bytes_at_most() -> None:
    written = encode_process("node-1", 7)
    assert process_in(written + b" " * (4096 - len(written))) == ("node-1", 7)
    assert process_in(written + b" " * (4097 - len(written))) == ("", 0)
