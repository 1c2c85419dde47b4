"""Texts for the tokenizer's tests: what is on the machine, and what is made to go wrong. The same at every
run on one machine."""

import pathlib
import random
import sysconfig

# First and last letters of scripts; words are drawn from between them.
SCRIPTS = {
    "latin": "az",
    "latin accents": "àÿ",
    "greek": "αω",
    "cyrillic": "ая",
    "armenian": "աֆ",
    "hebrew": "את",
    "arabic": "ءي",
    "devanagari": "अ्",
    "bengali": "অৌ",
    "tamil": "அௌ",
    "telugu": "అౌ",
    "thai": "กฺ",
    "lao": "ກໜ",
    "tibetan": "ཀྼ",
    "georgian": "აჰ",
    "hangul": "가힣",
    "jamo": "ᄀᇿ",
    "hiragana": "ぁゖ",
    "katakana": "ァヺ",
    "han": "一龥",
    "han b": "\U00020000\U0002a6df",
    "mongolian": "\u180a\u1842",
    "cherokee": "ᎠᏴ",
    "vietnamese": "\u1ea0\u1ef9",
    "ethiopic": "አፚ",
    "myanmar": "က\u1049",
    "khmer": "ក៝",
    "sinhala": "අෟ",
    "egyptian": "\U00013000\U0001345f",
    "mathematical": "\U0001d400\U0001d7ff",
    "fullwidth": "！～",
    "roman": "Ⅰↈ",
    "circled": "①ⓩ",
    "young": "\U000105c0\U000105ff",
}
SPACES = "\t\n\v\f\r \x85\xa0\u1680\u180e\u2000\u2003\u200a\u200b\u2028\u2029\u202f\u205f\u3000\ufeff\x1c\x1f"
MARKS = (
    "\u0300\u0301\u0308\u0323\u0327\u0328\u0334\u0345\u093c\u094d\u09be\u0b56\u1161\u11a8\u3099\u0c3c"
    "\u1e08f\U0001e130\U00011930\u200d\ufe0f"
)
EMOJI = ["😀", "👩‍👩‍👧‍👦", "🏳️‍🌈", "👍🏽", "🇩🇪", "1️⃣", "❤️‍🔥", "🧑🏿‍💻", "☺", "™"]
PIECES = [
    "'s",
    "'S",
    "'ſ",
    "'ll",
    "'LL",
    "'re",
    "'vE",
    "''t",
    "don't",
    "I'M",
    "'",
    '"',
    "<|im_start|>",
    "<|im_end|>",
    "<think>",
    "</think>",
    "<thinking",
    "<|endoftext|>",
    "<|im_",
    "<|mask|>",
    " <|mask|> ",
    "<|pad|>  ",
    "word",
    "words",
    " word.",
    "sword",
    "wörter",
    "<both>",
    " <both>\n ",
    "e\u0301",
    "e\u0301\u0301",
    "é\u0301",
    "a.b",
    "x",
    "\ufffd",
    "\u212b",
    "\u2126",
    "ﬁ",
    "ß",
    "İ",
    "ǆ",
]


def of_script(rng, ends):
    low, high = map(ord, ends)
    words = []
    for _ in range(rng.randint(1, 30)):
        words.append("".join(chr(rng.randint(low, high)) for _ in range(rng.randint(1, 9))))
    return rng.choice([" ", " ", " ", ", ", "\n", ""]).join(words)


def any_character(rng):
    while True:
        c = rng.choice(
            [
                rng.randrange(0x80),
                rng.randrange(0x800),
                rng.randrange(0x10000),
                rng.randrange(0x32400),
                rng.randrange(0xE0000, 0x110000),
            ]
        )
        if not 0xD800 <= c < 0xE000:
            return chr(c)


def mixed(rng):
    """A text of everything: spaces of all kinds, digits, marks, emoji, contractions, added tokens, rare
    characters."""
    out = []
    for _ in range(rng.randint(1, 40)):
        kind = rng.randrange(9)
        if kind == 0:
            out.append("".join(rng.choice(SPACES) for _ in range(rng.randint(1, 5))))
        elif kind == 1:
            out.append(rng.choice([" ", "  ", "\n", "\r\n", " \n ", "\n\n"]))
        elif kind == 2:
            out.append("".join(rng.choice("0123456789٣५½²Ⅷ") for _ in range(rng.randint(1, 7))))
        elif kind == 3:
            out.append("".join(rng.choice("aeoAOnक가ᄀ" + MARKS) for _ in range(rng.randint(1, 8))))
        elif kind == 4:
            out.append(rng.choice(EMOJI))
        elif kind == 5:
            out.append(rng.choice(PIECES))
        elif kind == 6:
            out.append("".join(any_character(rng) for _ in range(rng.randint(1, 6))))
        elif kind == 7:
            out.append(of_script(rng, rng.choice(list(SCRIPTS.values())))[:20])
        else:
            out.append(
                "".join(rng.choice("!?.,;:-_()[]{}/\\+*=<>|&%$#@~`^\"'") for _ in range(rng.randint(1, 6)))
            )
    return "".join(out).replace("\0", "")


def broken(rng):
    """Bytes that are nearly UTF-8."""
    text = bytearray(mixed(rng).encode()[:200])
    for _ in range(rng.randint(1, 8)):
        at = rng.randrange(len(text) + 1)
        kind = rng.randrange(4)
        if kind == 0:
            text[at:at] = bytes(rng.randrange(1, 256) for _ in range(rng.randint(1, 4)))
        elif kind == 1:
            del text[at : at + rng.randint(1, 2)]
        elif kind == 2:
            text[at:at] = rng.choice(
                [
                    b"\xed\xa0\x80",
                    b"\xc0\x80",
                    b"\xf4\x90\x80\x80",
                    b"\xe0\x80\xaf",
                    b"\xf0\x9f\x98",
                    b"\xe4\xb8",
                    b"\xff",
                    b"\xf8\x88\x80\x80\x80",
                ]
            )
        elif at < len(text):
            text[at] = rng.randrange(1, 256)
    return bytes(text).replace(b"\0", b"")


def repeated(size):
    """Words too long for anybody's cache, and too long for what is quadratic."""
    return [
        "a" * size,
        "ab" * (size // 2),
        "é" * size,
        " " * size,
        "\n" * size,
        " \n" * size,
        "7" * size,
        "=" * size,
        "가" * (size // 3),
        "xyz" * size + " end",
        "".join(random.Random(5).choice("abcdefgh") for _ in range(size)),
    ]


def files(limit):
    """Sources and prose on this machine, up to so many bytes; documents of at most 100 kB."""
    library = pathlib.Path(sysconfig.get_paths()["stdlib"])
    found = []
    for folder, pattern in [
        (library, "*.py"),
        (pathlib.Path("/usr/share/perl"), "**/*.pod"),
        (pathlib.Path("/usr/share/doc"), "*/copyright"),
        (pathlib.Path(sysconfig.get_paths()["purelib"]), "torch/*.py"),
        (pathlib.Path("/usr/share/i18n/locales"), "*"),
        (pathlib.Path(__file__).parents[2], "src/nereid/*/*.cpp"),
        (pathlib.Path(__file__).parents[2], "docs/*.md"),
    ]:
        share = limit // 5
        for path in sorted(folder.glob(pattern)):
            if share <= 0:
                break
            if path.is_file():
                text = path.read_bytes()[:100_000].replace(b"\0", b"")
                share -= len(text)
                found.append(text)
    return found


def corpus(limit, seed=1):
    """A list of texts (bytes without NUL), some of them no UTF-8; about `limit` bytes of files and 1,000 made
    texts a megabyte of it."""
    rng = random.Random(seed)
    texts = files(limit)
    for _ in range(max(200, limit // 1000)):
        texts.append(mixed(rng).encode())
        texts.append(of_script(rng, rng.choice(list(SCRIPTS.values()))).encode())
        texts.append(broken(rng))
    return [text for text in texts if text]


# Ideographs and syllables of Hangul: characters with the same properties, two in three of all.
ALIKE = (range(0x3400, 0xA000), range(0xAC00, 0xD7A4), range(0x17000, 0x18D00), range(0x20000, 0x32400))


def every_character(form, alike=True):
    """Texts in which each character of planes 0 to 3 and 14 stands in `form`, {} for it; unassigned ones
    too. Without `alike` one in eleven of those that have the same properties."""
    texts, chunk = [], []
    for c in [*range(1, 0xD800), *range(0xE000, 0x32400), *range(0xE0000, 0xE01F0), 0xF0000, 0x10FFFF]:
        if not alike and c % 11 and any(c in of for of in ALIKE):
            continue
        chunk.append(form.replace("{}", chr(c)))
        if len(chunk) == 2000:
            texts.append("".join(chunk).encode())
            chunk = []
    return texts + ["".join(chunk).encode()]
