/** Why an address, a query or an act is refused, with its HTTP status and title. */
const kinds = {
  bad_request: [400, 'Bad request'],
  forbidden: [403, 'Not allowed'],
  not_found: [404, 'Not found'],
  conflict: [409, 'Not possible now'],
  /** It was begun, and may be done. */
  unclear: [502, 'Not known whether it is done'],
  unavailable: [503, 'Not available now'],
} as const

export type PageReason = keyof typeof kinds

/** An answer that is an error. The message is for the asker, and quotes nothing of others. */
export class PageError extends Error {
  override readonly name = 'PageError'
  readonly reason: PageReason
  /** What to do; undefined: nothing. */
  readonly remedy: string | undefined

  constructor(reason: PageReason, message: string, remedy?: string) {
    super(message)
    this.reason = reason
    this.remedy = remedy
  }

  get status(): number {
    return kinds[this.reason][0]
  }

  get title(): string {
    return kinds[this.reason][1]
  }
}
