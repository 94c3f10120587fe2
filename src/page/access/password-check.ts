/** Judges passwords: as much work for a name that nobody has, and never much at once. */
import type { HttpUser } from '../http/access-config.ts'

/** `isPassword` of `lib/password-hash.ts`; tests count and hurry it. */
export type IsPassword = (password: string, hash: string) => Promise<boolean>

/** 128 MiB each, and each holds one of the four threads that DNS and files share. */
const mostAtOnce = 2

export interface PasswordCheck {
  /** Runs `work` in one of few places; returns undefined if all are taken. */
  inTurn<T>(work: () => Promise<T>): Promise<T | undefined>
  /** Whether it is the password of the user; nobody has any. */
  judge(user: HttpUser | undefined, password: string): Promise<boolean>
}

export function createPasswordCheck(isPassword: IsPassword): PasswordCheck {
  let running = 0
  return {
    async inTurn(work) {
      if (running >= mostAtOnce) return undefined
      running += 1
      try {
        return await work()
      } finally {
        running -= 1
      }
    },
    judge: (user, password) => isPassword(password, readHash(user)),
  }
}

/** '' is no hash and costs as much as one. */
function readHash(user: HttpUser | undefined): string {
  try {
    return user?.passwordHash?.reveal() ?? ''
  } catch {
    return ''
  }
}
