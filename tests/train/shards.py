"""Token shards written by hand, from docs/data.md alone: a second opinion on the format."""

import json
import pathlib
import struct

_TABLE = []
for byte in range(256):
    crc = byte
    for _ in range(8):
        crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    _TABLE.append(crc)


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = (crc >> 8) ^ _TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def write_shard(path, documents, vocab, tokenizer=bytes(32)):
    """documents: a list of (tokens, [(begin, end), ...])."""
    code = "H" if vocab <= 65536 else "I"
    tokens = b"".join(struct.pack(f"<{len(t)}{code}", *t) for t, _ in documents)
    tokens += bytes(-len(tokens) % 8)
    index, spans, at, span = b"", b"", 0, 0
    for t, answers in documents + [((), ())]:
        index += struct.pack("<QQ", at, span)
        spans += b"".join(struct.pack("<II", *a) for a in answers)
        at, span = at + len(t), span + len(answers)
    body = tokens + index + spans
    sums = b"".join(struct.pack("<I", crc32c(body[i : i + 65536])) for i in range(0, len(body), 65536))
    answer_tokens = sum(end - begin for _, answers in documents for begin, end in answers)
    head = b"NRDTOKEN" + struct.pack("<II", 1, struct.calcsize(code)) + tokenizer
    head += struct.pack("<QQQQII", at, len(documents), span, answer_tokens, vocab, 65536) + bytes(36)
    head += struct.pack("<I", crc32c(head))
    pathlib.Path(path).write_bytes(head + body + sums + struct.pack("<I", crc32c(sums)))
    return {
        "file": pathlib.Path(path).name,
        "documents": len(documents),
        "tokens": at,
        "answer_tokens": answer_tokens,
    }


def write_set(folder, shards, vocab):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True)
    listed = [write_shard(folder / f"{i:05}.tokens", documents, vocab) for i, documents in enumerate(shards)]
    (folder / "tokens.json").write_text(
        json.dumps(
            {
                "nereid_tokens": 1,
                "tokenizer": "00" * 32,
                "vocab_size": vocab,
                "made_by": "shards.py",
                "done": True,
                "shards": listed,
                "next_file": 0,
                "next_byte": 0,
                "next_line": 0,
                "left_out": {},
            }
        )
    )


def read_shard(path):
    """[(tokens, [(begin, end), ...]), ...], every checksum looked at."""
    data = pathlib.Path(path).read_bytes()
    assert data[:8] == b"NRDTOKEN" and crc32c(data[:124]) == struct.unpack_from("<I", data, 124)[0]
    version, width = struct.unpack_from("<II", data, 8)
    tokens, documents, spans, answer_tokens, vocab, block = struct.unpack_from("<QQQQII", data, 48)
    assert version == 1 and width == (2 if vocab <= 65536 else 4) and block == 65536
    index = 128 + (tokens * width + 7) // 8 * 8
    at = index + 16 * (documents + 1)
    end = at + 8 * spans
    for i, start in enumerate(range(128, end, block)):
        assert (
            crc32c(data[start : min(start + block, end)]) == struct.unpack_from("<I", data, end + 4 * i)[0]
        ), (path, i)
    ids = struct.unpack_from(f"<{tokens}{'H' if width == 2 else 'I'}", data, 128)
    starts = struct.unpack_from(f"<{2 * (documents + 1)}Q", data, index)
    answers = [struct.unpack_from("<II", data, at + 8 * i) for i in range(spans)]
    assert sum(e - b for b, e in answers) == answer_tokens
    return [
        (list(ids[starts[2 * d] : starts[2 * d + 2]]), answers[starts[2 * d + 1] : starts[2 * d + 3]])
        for d in range(documents)
    ]
