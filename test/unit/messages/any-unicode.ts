import fc from 'fast-check'

/** Characters that hide, turn or stack others, halves of characters, and parts of links. */
const nasty = [
  '\u0000 \u0007 \u0085 \u2028 \u200B \u200D \u202E \u2066 \uFEFF \u00AD \u{E0041} \uFE0F \u0301',
  '\u3164 \uFFFE \uD800 \uDC00 . ． 。 @ : / :// http https:// www. evil.com a 1 - _ 10.0.0.1',
  'joe@acme.com tg:// xn--p1ai [.] hxxp ❤ 😀 tel: mailto: file: ms-x: \\\\ \\\\\\\\a \\ // /',
].flatMap((line) => line.split(' '))

/** Any code points, lone surrogates too, and often the nasty ones. */
export const anyUnicode: fc.Arbitrary<string> = fc
  .array(
    fc.oneof(
      fc.constantFrom(...nasty, '\r', '\n', '\r\n', '\t', ' '),
      fc.string({ unit: 'binary', maxLength: 4 }),
      fc.string({ maxLength: 6 }),
    ),
    { maxLength: 40 },
  )
  .map((parts) => parts.join(''))

/** What no cleaned text may hold: written apart from the code under test, by range. */
export const unseenCharacters = new RegExp(
  [
    String.raw`[\u0000-\u001F\u007F-\u009F\u00AD\u061C\u180E\u200B-\u200F\u2028-\u202E\u2060-\u206F]`,
    String.raw`[\u3164\uFE00-\uFE0F\uFEFF\uFFFE\uFFFF\u{E0000}-\u{E0FFF}]`,
  ].join('|'),
  'u',
)

/** What clients turn into links: a scheme, a www, a name with a top-level domain, an IPv4 address, a UNC path. */
export const linkable =
  /(?<!hxxps?):\/\/|www\.[\p{L}\p{N}]|[\p{L}\p{N}\p{So}-][.．。｡]\p{L}{2}|\d\.\d+\.\d+\.\d|https?:\/\/|\b(?:tel|mailto|file):[^\s[…]|(?<![\w:\\])\\{2}\w/iu
