/**
 * Reads the JSON text of an answer piece by piece as it arrives, before anything parses it, so that no answer
 * costs more than its limits say: long strings are cut, and what has too many items or values, or is still too
 * large, is an error at once. The rest of such an answer is never received.
 */
import { UpstreamError } from './error.ts'

export interface AnswerLimits {
  /** Items asked for; an answer may hold ten times as many, and a hundred at least. */
  pageSize?: number | undefined
  /** Bytes of a string that are kept; "…" stands for the rest. */
  textBytes: number
  /**
   * Bytes that are kept of an item, and of an answer that is no page. Each list or object in it takes at most half
   * of what those before it left; the rest of it is dropped. Left out: there is no limit but `bytes`.
   */
  itemBytes?: number | undefined
  /** Bytes that are kept of all. */
  bytes: number
  /** Values of any kind: what parsing costs in memory. */
  values: number
}

/**
 * What the daemon reads: parsing it takes some 10 ms of the thread that does everything else. No text of an
 * event is kept beyond 20,000 code units, each six bytes at most where it is escaped.
 */
export const daemonLimits: AnswerLimits = {
  textBytes: 120_000,
  bytes: 1024 * 1024,
  values: 600_000,
}

/** Of items that come alone, and of full events: so that none is too large to be read. */
export const itemLimits: AnswerLimits = { ...daemonLimits, itemBytes: 512 * 1024 }

/** What a command reads for an operator, who waits for it and sees all of it. */
export const commandLimits: AnswerLimits = {
  textBytes: Infinity,
  bytes: 64 * 1024 * 1024,
  values: 2_000_000,
}

const [quote, backslash, comma, letterU] = [0x22, 0x5c, 0x2c, 0x75]
const [openObject, openList, closeObject, closeList] = [0x7b, 0x5b, 0x7d, 0x5d]
const ellipsis = Buffer.from('…')

/** Follows strings and brackets, and nothing else: whether the text is JSON at all, the parser says. */
export class BoundedText {
  readonly #limits: AnswerLimits
  readonly #mostItems: number
  /** Copied together, so that it takes no more memory however small the pieces are. */
  #kept = Buffer.alloc(0)
  #bytes = 0
  /** The piece that is being read, and from where on it is kept; -1: what is read now is dropped. */
  #piece: Buffer = Buffer.alloc(0)
  #keptFrom = 0
  #depth = 0
  /** Whether the text is an object, and what is open in it a list: then its commas part items. */
  #isObject = false
  #isList = false
  #items = 0
  #values = 0
  /** Bytes that were kept when the item that is read began, and when the list or object in it did. */
  #itemFrom = 0
  #memberFrom = 0
  /** The depth of the list or object whose rest is dropped; 0: none. */
  #pruned = 0
  #isInString = false
  /** Bytes of the open string so far, and of an escape in it that are still to come. */
  #length = 0
  #escaped = 0

  constructor(limits: AnswerLimits) {
    this.#limits = limits
    this.#mostItems = Math.max(100, 10 * (limits.pageSize ?? Infinity))
  }

  /** Throws ServiceError `contract`, fault `too_large`, once the text exceeds a limit. */
  add(bytes: Uint8Array): void {
    this.#piece = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
    if (this.#keptFrom > 0) this.#keptFrom = 0
    let at = 0
    let [quoteAt, backslashAt] = [-1, -1]
    while (at < bytes.length) {
      if (!this.#isInString) {
        at = this.#readStructure(at)
      } else if (this.#escaped > 0) {
        at = this.#readEscape(at)
      } else {
        if (quoteAt < at) quoteAt = this.#find(quote, at)
        if (backslashAt < at) backslashAt = this.#find(backslash, at)
        at = this.#readRun(at, Math.min(quoteAt, backslashAt))
      }
    }
    if (this.#keptFrom >= 0) this.#keep(this.#piece.subarray(this.#keptFrom))
  }

  /** What is kept of it; what is no UTF-8 is replaced. */
  end(): string {
    return new TextDecoder().decode(this.#kept.subarray(0, this.#bytes))
  }

  /** Reads until a string begins; returns where its content does. */
  #readStructure(from: number): number {
    for (let at = from; at < this.#piece.length; at += 1) {
      const byte = this.#piece[at]
      if (byte === comma) this.#part(at)
      else if (byte === openObject || byte === openList) this.#open(byte, at)
      else if (byte === closeObject || byte === closeList) this.#close(at)
      else if (byte === quote) {
        this.#isInString = true
        this.#length = 0
        return at + 1
      }
    }
    return this.#piece.length
  }

  /** Reads a string's plain characters up to `to`, and what stands there: a quote or the backslash of an escape. */
  #readRun(from: number, to: number): number {
    const room = Math.max(0, this.#limits.textBytes - this.#length)
    let cutAt = from + room
    while (cutAt < to && isContinuation(this.#piece[cutAt])) cutAt += 1
    const byte = this.#piece[to]
    if (cutAt < to || (cutAt === to && byte === backslash)) this.#cut(cutAt)
    this.#length += to - from
    if (byte === backslash) {
      this.#escaped = 1
      this.#length += 1
    }
    if (byte === quote) {
      this.#isInString = false
      if (this.#keptFrom < 0 && this.#pruned === 0) this.#keptFrom = to
    }
    return to + 1
  }

  /** One byte of an escape: behind `\u` come four. */
  #readEscape(at: number): number {
    const isUnicode = this.#escaped === 1 && this.#piece[at] === letterU
    this.#escaped = isUnicode ? 4 : this.#escaped - 1
    this.#length += 1
    return at + 1
  }

  /** Nothing is kept from here to the end of the string. */
  #cut(at: number): void {
    if (this.#keptFrom < 0) return
    this.#keep(this.#piece.subarray(this.#keptFrom, at))
    this.#keep(ellipsis)
    this.#keptFrom = -1
  }

  #keep(bytes: Uint8Array): void {
    const length = this.#bytes + bytes.length
    if (length > this.#limits.bytes) throw tooLargeError(`over ${this.#limits.bytes / 1024} KiB`)
    if (length > this.#kept.length) {
      const larger = Buffer.alloc(Math.max(2 * this.#kept.length, length))
      larger.set(this.#kept.subarray(0, this.#bytes))
      this.#kept = larger
    }
    this.#kept.set(bytes, this.#bytes)
    this.#bytes = length
  }

  #open(byte: number, at: number): void {
    this.#depth += 1
    if (this.#pruned > 0) return
    this.#count()
    if (this.#depth === 1) {
      this.#isObject = byte === openObject
    } else if (this.#depth === 2) {
      this.#isList = byte === openList
      this.#items = 0
      this.#itemFrom = this.#keptTo(at)
    } else {
      if (this.#depth === this.#itemDepth + 1) this.#memberFrom = this.#keptTo(at)
      this.#prune(at + 1)
    }
  }

  #part(at: number): void {
    if (this.#pruned > 0) return
    this.#count()
    if (this.#depth !== 2 || !this.#isObject || !this.#isList) {
      if (this.#depth > 1) this.#prune(at)
      return
    }
    this.#itemFrom = this.#keptTo(at)
    this.#items += 1
    if (this.#items < this.#mostItems) return
    const { pageSize } = this.#limits
    throw tooLargeError(`over ${this.#mostItems} items where ${pageSize} were asked for`)
  }

  #close(at: number): void {
    if (this.#pruned > 0 && this.#depth === this.#pruned) {
      this.#pruned = 0
      this.#keptFrom = at
    }
    this.#depth -= 1
  }

  /** Where it has its share, drops the rest of the list or object that is open. */
  #prune(at: number): void {
    if (this.#hasRoom(this.#keptTo(at))) return
    this.#keep(this.#piece.subarray(this.#keptFrom, at))
    this.#keptFrom = -1
    this.#pruned = this.#depth
  }

  /** A list or object of an item takes half of what is left of its share: what follows is read as well. */
  #hasRoom(bytes: number): boolean {
    const { itemBytes = Infinity } = this.#limits
    if (bytes - this.#itemFrom > itemBytes) return false
    const left = itemBytes - (this.#memberFrom - this.#itemFrom)
    return this.#depth <= this.#itemDepth || bytes - this.#memberFrom <= left / 2
  }

  /** An item of a page is open at this depth, or what an answer that is no page has in its place. */
  get #itemDepth(): number {
    return this.#isObject && this.#isList ? 3 : 2
  }

  #keptTo(at: number): number {
    return this.#bytes + at - this.#keptFrom
  }

  #count(): void {
    this.#values += 1
    if (this.#values > this.#limits.values)
      throw tooLargeError(`over ${this.#limits.values} values`)
  }

  #find(byte: number, from: number): number {
    const at = this.#piece.indexOf(byte, from)
    return at === -1 ? this.#piece.length : at
  }
}

/** A byte of a character that began before it. */
function isContinuation(byte = 0): boolean {
  return (byte & 0b1100_0000) === 0b1000_0000
}

function tooLargeError(what: string): UpstreamError {
  return new UpstreamError('contract', `the answer is too large to be read: ${what}`, {
    fault: 'too_large',
  })
}
