/** What a leak site, the service or a sink may write to whoever looks at it in a terminal or a log. */

/** What moves a cursor, begins a line or a command of a terminal, hides, or turns the text around it. */
export const actedUpon = /[\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}\p{Zl}\p{Zp}]/u

/** By what they would do. */
export const hostileWords: readonly [string, string][] = [
  ['clear the screen', 'screen \u001B[2J\u001B[1;1H cleared'],
  [
    'set a title and a link',
    'title \u001B]0;owned\u0007 and \u001B]8;;https://evil.example\u001B\\link\u001B]8;;\u001B\\',
  ],
  ['fill the clipboard', 'clipboard \u001B]52;c;ZXZpbA==\u0007'],
  ['say it in eight bits', 'eight bits \u009B2J \u009D0;owned\u009C \u0090q\u009C'],
  ['ring, go back, delete', 'bell \u0007 backspace \b\b\b delete \u007F null \u0000'],
  [
    'begin a line',
    'line\n2026-11-01 ERROR: forged\r\nand\rover\u0085next\u2028other\u2029paragraph\u000B\u000C',
  ],
  ['begin a line of JSON', '"} \n{"level":"error","msg":"forged"}'],
  [
    'turn and hide',
    '\u202Eecived\u202C \u2066x\u2069 \u200B\u200D\uFEFF\u00AD \u{E0041} \u3164\uFE0F\u{E0101}',
  ],
]

export const allHostileWords = hostileWords.map(([, words]) => words).join(' ')
