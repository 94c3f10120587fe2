/**
 * Bounds the JSON text of an answer as its chunks arrive, before it is parsed, so that no answer
 * costs more than its limits. Long strings are cut. An answer with too many items or values, or one
 * that is still too large, throws at once, and the rest of it is never received.
 */
import { UpstreamError } from './error.ts'

export interface AnswerLimits {
  /** Number of items requested. An answer may hold ten times as many, and never fewer than 100. */
  pageSize?: number | undefined
  /** Bytes kept of a string; "…" replaces the rest. */
  textBytes: number
  /**
   * Bytes kept of one item, or of an answer that is not a page. Each list or object in it may use
   * half of what those before it left over, and its remainder is dropped. Default: no limit but
   * `bytes`.
   */
  itemBytes?: number | undefined
  /** Bytes kept of the whole answer. */
  bytes: number
  /** Number of JSON values of any kind, which decides the memory that parsing takes. */
  values: number
}

/**
 * Limits for the daemon: parsing such an answer takes some 10 ms of its only thread. No text of an
 * event is kept beyond 20,000 code units, each of which takes six bytes at most when escaped.
 */
export const daemonLimits: AnswerLimits = {
  textBytes: 120_000,
  bytes: 1024 * 1024,
  values: 600_000,
}

/** Limits for single items and full events, which cut them so that none is too large to be read. */
export const itemLimits: AnswerLimits = { ...daemonLimits, itemBytes: 512 * 1024 }

/** Limits for commands, whose operator waits for the answer and sees all of it. */
export const commandLimits: AnswerLimits = {
  textBytes: Infinity,
  bytes: 64 * 1024 * 1024,
  values: 2_000_000,
}

const [quote, backslash, comma, letterU] = [0x22, 0x5c, 0x2c, 0x75]
const [openObject, openList, closeObject, closeList] = [0x7b, 0x5b, 0x7d, 0x5d]
const ellipsis = Buffer.from('…')

/** Tracks only strings and brackets; whether the text is valid JSON is left to the parser. */
export class BoundedText {
  readonly #limits: AnswerLimits
  readonly #mostItems: number
  /** One buffer that chunks are copied into, so that many small chunks take no extra memory. */
  #kept = Buffer.alloc(0)
  #bytes = 0
  /** The current chunk, and where in it the kept part begins; -1: what is read now is dropped. */
  #piece: Buffer = Buffer.alloc(0)
  #keptFrom = 0
  #depth = 0
  /**
   * Whether the text is an object, and whether the value open at depth 2 is a list. If both, the
   * commas at depth 2 separate items.
   */
  #isObject = false
  #isList = false
  #items = 0
  #values = 0
  /** Bytes kept when the current item began, and when the list or object in it began. */
  #itemFrom = 0
  #memberFrom = 0
  /** Depth of the list or object whose remainder is being dropped; 0: none. */
  #pruned = 0
  #isInString = false
  /** Bytes of the open string so far, and bytes still to come of an escape in it. */
  #length = 0
  #escaped = 0

  constructor(limits: AnswerLimits) {
    this.#limits = limits
    this.#mostItems = Math.max(100, 10 * (limits.pageSize ?? Infinity))
  }

  /** Throws UpstreamError `contract` with fault `too_large` once the text exceeds a limit. */
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

  /** Returns the kept text; invalid UTF-8 is replaced. */
  end(): string {
    return new TextDecoder().decode(this.#kept.subarray(0, this.#bytes))
  }

  /** Reads up to the next string; returns where its content begins. */
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

  /**
   * Reads a string's plain characters up to `to`, and the byte there: the closing quote or the
   * backslash of an escape.
   */
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

  /** Reads one byte of an escape; `\u` is followed by four. */
  #readEscape(at: number): number {
    const isUnicode = this.#escaped === 1 && this.#piece[at] === letterU
    this.#escaped = isUnicode ? 4 : this.#escaped - 1
    this.#length += 1
    return at + 1
  }

  /** Drops the string from here to its end. */
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
    } else if (this.#depth > 2) {
      // below 1 the text is no JSON: it has more closing brackets than opening ones
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

  /** Drops the remainder of the open list or object once it has used up its share. */
  #prune(at: number): void {
    if (this.#hasRoom(this.#keptTo(at))) return
    this.#keep(this.#piece.subarray(this.#keptFrom, at))
    this.#keptFrom = -1
    this.#pruned = this.#depth
  }

  /**
   * A list or object in an item may use half of what is left of the item's share, so that what
   * follows it is read as well.
   */
  #hasRoom(bytes: number): boolean {
    const { itemBytes = Infinity } = this.#limits
    if (bytes - this.#itemFrom > itemBytes) return false
    const left = itemBytes - (this.#memberFrom - this.#itemFrom)
    return this.#depth <= this.#itemDepth || bytes - this.#memberFrom <= left / 2
  }

  /** Depth at which an item of a page is open, or its counterpart in an answer without pages. */
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

/** Whether `byte` continues a UTF-8 character that began before it. */
function isContinuation(byte = 0): boolean {
  return (byte & 0b1100_0000) === 0b1000_0000
}

function tooLargeError(what: string): UpstreamError {
  return new UpstreamError('contract', `the answer is too large to be read: ${what}`, {
    fault: 'too_large',
  })
}
