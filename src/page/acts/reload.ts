/** The act that reads the configuration again. */
import { z } from 'zod'
import { act } from '../act.ts'
import { isRestricted } from '../asker.ts'
import { PageError } from '../page-error.ts'

export const reloadConfig = act({
  path: '/reload',
  summary: 'read the configuration again; with a mistake in it the old one stays',
  input: z.object({}),
  async perform(actor) {
    if (isRestricted(actor)) {
      const problem = 'the configuration is of all accounts, and you see some of them'
      throw new PageError('forbidden', problem, 'ask somebody who sees all')
    }
    const { reload } = actor.engine
    if (!reload) throw new PageError('conflict', 'this daemon has no file that it could read')
    const outcome = await reload(actor.user.name)
    switch (outcome.status) {
      case 'changed':
        return { done: true, said: [`Reloaded: generation ${outcome.generation}.`] }
      case 'unchanged':
        return {
          done: true,
          said: [`The file has not changed: still generation ${outcome.generation}.`],
        }
      case 'stopped':
        throw new PageError('unavailable', 'the daemon stops')
      case 'refused':
        if (outcome.mistakes.length > 0) {
          throw new PageError('bad_request', outcome.mistakes.join('\n'), kept)
        }
        throw new PageError('unavailable', 'not reloaded; the log has the cause', kept)
    }
  },
})

const kept = 'the old configuration stays'
