/** Answers that are dear to make and the same for many: made once for all who ask within a moment. */
import type { Clock } from '../../lib/clock.ts'

export class SharedAnswers {
  readonly #clock: Clock
  readonly #forMs: number
  readonly #made = new Map<string, { atMs: number; answer: Promise<unknown> }>()

  constructor(clock: Clock, forMs: number) {
    this.#clock = clock
    this.#forMs = forMs
  }

  /** After an act: whoever did it looks for what has changed. */
  forget(): void {
    this.#made.clear()
  }

  /** A failure is not kept. */
  async read<Answer>(name: string, make: () => Promise<Answer>): Promise<Answer> {
    const nowMs = this.#clock.monotonic()
    for (const [other, { atMs }] of this.#made) {
      if (nowMs - atMs >= this.#forMs) this.#made.delete(other)
    }
    const known = this.#made.get(name)
    if (known) return known.answer as Promise<Answer>
    const answer = make()
    this.#made.set(name, { atMs: nowMs, answer })
    answer.catch(() => this.#made.delete(name))
    return answer
  }
}
