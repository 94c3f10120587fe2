/** Acts on items: send again, give up. */
import { z } from 'zod'
import { actOn, discardAct, type ItemAct, resendAct } from '../../delivery/item-acts.ts'
import { pluralize } from '../../lib/errors.ts'
import { leftWords } from '../../operator/acts/act-words.ts'
import { type LedgerItem, readItemAt } from '../../store/items.ts'
import { isHidden } from '../asker.ts'
import { act, type ActResult, type Actor } from '../act.ts'
import { PageError } from '../page-error.ts'
import { eventUrl } from '../output/urls.ts'

/** Bounds how long one act takes. */
const maxItems = 500

/** A form with one box sends a text, with several a list. */
const items = z
  .union([z.string().transform((one) => [one]), z.array(z.string())], 'choose at least one')
  .pipe(z.array(z.string().regex(/^[^/]+\/[\w:.-]+$/)).max(maxItems, `at most ${maxItems}`))
  .describe('Items as lists name them: account/reference.')

const input = z.object({ item: items })

export const resendItems = act({
  path: '/items/resend',
  summary: 'send dead, delivered or discarded items again',
  input,
  async perform(actor, { item }) {
    const chosen = await readChosen(actor, item)
    const resend = resendAct(actor.config.sinks, actor.user.name)
    return perform(chosen, { act: resend, done: 'queued again, to be sent within seconds' })
  },
})

export const discardItems = act({
  path: '/items/discard',
  summary: 'give up items that wait; close dead letters and quarantined items',
  input,
  async perform(actor, { item }) {
    const chosen = await readChosen(actor, item)
    return perform(chosen, { act: discardAct(actor.user.name), done: 'discarded' })
  },
})

/** Those of accounts that the actor sees. Throws PageError. */
async function readChosen(actor: Actor, addresses: string[]): Promise<LedgerItem[]> {
  const found = await Promise.all(
    addresses.map(async (address) => {
      const at = address.indexOf('/')
      const ledger = actor.ledgers.find(({ account }) => account === address.slice(0, at))
      return ledger && readItemAt(ledger, address.slice(at + 1))
    }),
  )
  const chosen = found.flatMap((item) => (!item || isHidden(actor, item.feeds) ? [] : [item]))
  if (chosen.length > 0) return chosen
  throw new PageError('not_found', 'none of these items is in the ledger any more')
}

async function perform(
  chosen: readonly LedgerItem[],
  { act: itemAct, done }: { act: ItemAct; done: string },
): Promise<ActResult> {
  const { fit = [], stay = [] } = Object.groupBy(chosen, (item) =>
    itemAct.takes(item) ? 'fit' : 'stay',
  )
  const { done: count, ...left } = await actOn(fit, itemAct, () => undefined)
  const [only] = chosen.length === 1 ? chosen : []
  const [, recordId = ''] = only?.ref.split(':') ?? []
  const others = Object.entries(left).filter(([, number]) => number > 0)
  return {
    done: count > 0,
    url: only?.item && eventUrl({ account: only.ledger.account, recordId }),
    said: [
      `${pluralize(count, 'item')} ${done}.`,
      ...others.map(
        ([why, number]) =>
          `${pluralize(number, 'item')} left: ${leftWords[why as keyof typeof left]}.`,
      ),
      ...(stay.length > 0
        ? [`${pluralize(stay.length, 'item')} left: not possible in the state it is in.`]
        : []),
    ],
  }
}
