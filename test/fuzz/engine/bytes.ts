/** Bytes read as choices, numbers and texts; after their end all is 0 and empty. */
export interface Bytes {
  byte(): number
  pick<Choice>(choices: readonly Choice[]): Choice
  /** Up to the next zero byte, or to the end. */
  text(): string
  /** All texts that are left. */
  texts(): string[]
  isOver(): boolean
}

export function bytesOf(data: Uint8Array): Bytes {
  const bytes = Buffer.from(data)
  let at = 0
  function byte(): number {
    return bytes[at++] ?? 0
  }
  function text(): string {
    const end = bytes.indexOf(0, at)
    const piece = bytes.subarray(at, end === -1 ? bytes.length : end)
    at += piece.length + 1
    return textOf(piece)
  }
  return {
    byte,
    pick: <Choice>(choices: readonly Choice[]) => choices[byte() % choices.length] as Choice,
    text,
    texts() {
      const left: string[] = []
      while (at < bytes.length) left.push(text())
      return left
    },
    isOver: () => at >= bytes.length,
  }
}

/** UTF-8, but that the three bytes of a half character make one: JSON can bring it in. */
export function textOf(bytes: Uint8Array): string {
  const latin = Buffer.from(bytes).toString('latin1')
  const pieces = latin.split(/(\u00ed[\u00a0-\u00bf][\u0080-\u00bf])/)
  return pieces
    .map((piece, index) => {
      const codes = Buffer.from(piece, 'latin1')
      if (index % 2 === 0) return codes.toString('utf8')
      return String.fromCharCode(0xd000 | ((codes[1]! & 0x3f) << 6) | (codes[2]! & 0x3f))
    })
    .join('')
}
