/** What replicas hold of one ledger, noted beside it: claims must never say anything else. */
import {
  advanceClaims,
  claimDue,
  freezeBatch,
  peekBatch,
  type Claim,
  type Message,
  type Outcome,
} from '../../src/delivery/claims.ts'
import { severityRank } from '../../src/event.ts'
import type { AccountLedger } from '../../src/store/account-ledger.ts'
import { readItems } from '../../src/store/records.ts'
import { beginAttempt, claimRef, makeDue, settleAttempt } from './attempts.ts'

/** Longer than any run. */
export const leaseMs = 3_600_000

interface OpenAttempt {
  ref: string
  token: string
  members: string[]
}

/** What a replica holds, as the replica knows it. */
interface InHand {
  replica: string
  claim: Claim
}

interface Lease {
  owner: string
  /** undefined: it became due just when it was claimed. */
  dueSinceMs: number | undefined
  /** Nobody else has claimed it since. */
  isOver: boolean
}

export class RehearsedClaims {
  /** What must never happen: work in two hands, sends that may be repeats and do not say so, and the like. */
  readonly faults: string[] = []
  readonly #ledger: AccountLedger
  readonly #attempts: OpenAttempt[] = []
  #hands: InHand[] = []
  /** By ref, also of claims whose answer was lost. */
  readonly #leases = new Map<string, Lease>()
  /** By ref: the ids in each of its messages. */
  readonly #ids = new Map<string, string>()
  /** By ref and since when it waits: the content that was sent. */
  readonly #contents = new Map<string, string>()
  /** By ref: the token of the last attempt. */
  readonly #last = new Map<string, string>()
  /** By item id: sends of which nobody knows that they failed. */
  readonly #risks = new Map<string, number>()
  /** By sink, while something was left: places given, and those of them that something worse did not get. */
  readonly #turns = new Map<string, { places: number; milder: number }>()
  #tokens = 0

  constructor(ledger: AccountLedger) {
    this.#ledger = ledger
  }

  /** `isAnswerLost`: claimed twice, of which the replica knows the second. */
  async claim(owner: string, sink: string, max: number, isAnswerLost: boolean): Promise<boolean> {
    if (isAnswerLost) await this.#claimOnce(owner, sink, max)
    const claimed = await this.#claimOnce(owner, sink, max)
    const isNew = ({ replica, claim: { ref } }: InHand): boolean =>
      replica !== owner || claimed.every((one) => one.claim.ref !== ref)
    this.#hands = [...this.#hands.filter(isNew), ...claimed]
    return claimed.length > 0
  }

  async #claimOnce(owner: string, sink: string, max: number): Promise<InHand[]> {
    const beforeMs = Date.now()
    const dueSince = await this.#claimable(sink, beforeMs)
    const asked = { sink, max, leastRank: 1 }
    const { claims, left } = await claimDue(this.#ledger, { owner, leaseMs }, asked)
    if ((await this.#ledger.redis.sismember(this.#ledger.key('gone'), sink)) === 1) {
      if (claims.length + left > 0) this.faults.push(`${sink} is gone, and its work is claimed`)
      return []
    }
    for (const { ref } of claims) {
      const held = this.#leases.get(ref)
      if (held?.isOver === false) this.faults.push(`${ref} went to ${owner}, held by ${held.owner}`)
      this.#leases.set(ref, { owner, dueSinceMs: dueSince.get(ref), isOver: false })
    }
    const over = [...(await this.#claimable(sink, beforeMs)).keys()]
    // more where a lease that was over is renewed: whoever chooses it sees that it is held
    if (left < over.length) this.faults.push(`${left} are said to be left, ${over.length} are`)
    const ranks = await Promise.all(over.map((ref) => this.#rankOf(ref)))
    if (over.length > 0) this.#notePlaces(sink, max, claims, Math.max(...ranks))
    return claims.map((claim) => ({ replica: owner, claim }))
  }

  /** One place in ten is that of the longest waiting, the others are those of the worst. */
  #notePlaces(sink: string, max: number, claims: readonly Claim[], worstLeft: number): void {
    const { places, milder } = this.#turns.get(sink) ?? { places: 0, milder: 0 }
    const went = claims.filter(({ rank }) => rank < worstLeft).length
    const turns = { places: places + max, milder: milder + went }
    this.#turns.set(sink, turns)
    if (turns.milder > Math.floor(turns.places / 10)) {
      this.faults.push(`of ${turns.places} places ${turns.milder} went to what is less severe`)
    }
  }

  /** Makes one batch of what a sink has collected, and holds it; where the answer is lost nobody knows that. */
  async freeze(
    owner: string,
    sink: string,
    count: number,
    through: AccountLedger,
  ): Promise<boolean> {
    const members = await peekBatch(this.#ledger, sink, count)
    if (members.length === 0) return false
    const ref = `c:${sink}`
    if (!(await claimRef(this.#ledger, ref, owner, leaseMs))) return false
    this.#leases.set(ref, { owner, dueSinceMs: undefined, isOver: false })
    const batch = { sink, destination: sink, members }
    const claim = await freezeBatch(through, { owner, leaseMs }, batch)
    if (!claim) return false
    this.#leases.set(claim.ref, { owner, dueSinceMs: undefined, isOver: false })
    this.#hands.push({ replica: owner, claim })
    return true
  }

  /** By ref: since when it is due, of what nobody holds and is due by then. */
  async #claimable(sink: string, atMs: number): Promise<Map<string, number>> {
    const name = this.#ledger.key('due', sink)
    const pairs = await this.#ledger.redis.zrangebyscore(name, '-inf', atMs, 'WITHSCORES')
    const due = pairs.flatMap((ref, i) =>
      i % 2 === 0 ? [[ref, Number(pairs[i + 1])] as const] : [],
    )
    return new Map(due.filter(([ref]) => this.#leases.get(ref)?.isOver !== false))
  }

  /** Of the worst that a ref stands for; what is still collected counts as high. */
  async #rankOf(ref: string): Promise<number> {
    if (ref.startsWith('c:')) return severityRank('high')
    if (ref.startsWith('b:')) return (await this.#batchOf(ref)).rk
    const [found] = await readItems(this.#ledger, [ref])
    return found ? severityRank(found.item.severity) : 0
  }

  async #batchOf(ref: string): Promise<{ n: number; rk: number; st?: string }> {
    const text = await this.#ledger.redis.get(this.#ledger.key('batch', ref.split(':')[1] ?? ''))
    return JSON.parse(text ?? '{"n":0,"rk":0}') as { n: number; rk: number; st?: string }
  }

  /** `through`: the ledger as the replica reaches it. */
  async open(owner: string, place: number, through: AccountLedger): Promise<boolean> {
    const hand = this.#pick(owner, place)
    if (!hand) return false
    this.#hands.splice(this.#hands.indexOf(hand), 1)
    const { claim } = hand
    const { ref, rank } = claim
    const holder = { owner, leaseMs, by: owner }
    if (claim.kind !== 'item' && claim.kind !== 'batch') {
      await advanceClaims(through, holder, { giveBack: [{ ref, rank }] })
      return false
    }
    const before = await this.#attemptsOf(ref)
    const token = this.#newToken()
    const { begun } = await advanceClaims(through, holder, { begin: [{ ref, token }] })
    const [opened] = begun
    if (!opened) return false
    if (this.#leases.get(ref)?.owner !== owner) this.faults.push(`${ref} was opened by ${owner}`)
    if (opened.attempt !== before + 1) this.faults.push(`${ref} counts ${opened.attempt} attempts`)
    await this.#noteSend({ ...claim, ...opened }, token)
    return true
  }

  #newToken(): string {
    return `t${(this.#tokens += 1)}`
  }

  async #attemptsOf(ref: string): Promise<number> {
    if (ref.startsWith('b:')) return (await this.#batchOf(ref)).n
    return (await readItems(this.#ledger, [ref]))[0]?.item.attempts ?? 0
  }

  async #isSending(ref: string): Promise<boolean> {
    if (ref.startsWith('b:')) return (await this.#batchOf(ref)).st === 'sending'
    return (await readItems(this.#ledger, [ref]))[0]?.item.state === 'sending'
  }

  #forgetContents(ref: string): void {
    for (const place of this.#contents.keys())
      if (place.startsWith(`${ref} `)) this.#contents.delete(place)
  }

  /** As somebody does who claims it after its lease, whatever its state. */
  async beginAny(ref: string, through: AccountLedger): Promise<boolean> {
    const token = this.#newToken()
    const begun = await beginAttempt(through, ref, token, leaseMs)
    if (begun.status !== 'send') return false
    this.#leases.set(ref, { owner: token, dueSinceMs: undefined, isOver: false })
    await this.#noteSend(begun, token)
    return true
  }

  async #noteSend(
    message: Pick<Message, 'ref' | 'members' | 'mayBeRepeat' | 'createdAtMs'>,
    token: string,
  ): Promise<void> {
    const { ref, members: sent, mayBeRepeat } = message
    this.#noteContent(message)
    this.#last.set(ref, token)
    const members = sent.map(({ id }) => id)
    const wasLost = members.some((id) => (this.#risks.get(id) ?? 0) > 0)
    if (wasLost && !mayBeRepeat) this.faults.push(`${ref} may be a repeat and does not say so`)
    const known = this.#ids.get(ref) ?? String(members)
    if (known !== String(members)) this.faults.push(`${ref} has other ids than before`)
    this.#ids.set(ref, known)
    for (const id of members) this.#risks.set(id, (this.#risks.get(id) ?? 0) + 1)
    this.#attempts.push({ ref, token, members })
  }

  /** Every attempt of a message sends the same. */
  #noteContent({
    ref,
    createdAtMs,
    members,
  }: Pick<Message, 'ref' | 'createdAtMs' | 'members'>): void {
    if (members.length === 0) return
    const content = JSON.stringify(members.map(({ title: _title, ...said }) => said))
    const known = this.#contents.get(`${ref} ${createdAtMs}`) ?? content
    if (known !== content) this.faults.push(`${ref} has another content than before`)
    this.#contents.set(`${ref} ${createdAtMs}`, content)
  }

  async settle(place: number, given: Outcome, through: AccountLedger): Promise<boolean> {
    const { outcome, answerLost = false } = given
    const least = outcome === 'split' ? 2 : 1
    const fitting = this.#attempts.filter(({ members }) => members.length >= least)
    const attempt = fitting[place % Math.max(1, fitting.length)]
    if (!attempt) return false
    const { ref, members } = attempt
    this.#attempts.splice(this.#attempts.indexOf(attempt), 1)
    const before = await this.#attemptsOf(ref)
    const isOver = this.#last.get(ref) !== attempt.token || !(await this.#isSending(ref))
    const { status } = await settleAttempt(through, { ...attempt, replica: 'r1' }, given)
    if (isOver && status === 'settled' && outcome !== 'delivered')
      this.faults.push(`${ref} became ${outcome} by an attempt that was over`)
    if (status === 'stale' && outcome === 'delivered')
      this.faults.push(`${ref} was delivered, and nobody knows`)
    if (outcome === 'unsent') this.#forgetContents(ref)
    const fewer = before - (await this.#attemptsOf(ref))
    const isUndone = outcome === 'unsent' && fewer === 1
    if (ref.startsWith('i:') && fewer !== 0 && !isUndone) {
      this.faults.push(`${ref} had ${before} attempts, and now ${fewer} fewer`)
    }
    if (outcome === 'delivered' || answerLost) return true
    for (const id of members) this.#risks.set(id, (this.#risks.get(id) ?? 0) - 1)
    return true
  }

  async renew(owner: string, through: AccountLedger): Promise<void> {
    const refs = this.#handsOf(owner).map(({ claim: { ref } }) => ref)
    const { lost } = await advanceClaims(through, { owner, leaseMs, by: owner }, { renew: refs })
    const mine = refs.filter((ref) => this.#leases.get(ref)?.owner === owner)
    const gone = refs.filter((ref) => !mine.includes(ref))
    if (String(lost) !== String(gone))
      this.faults.push(`lost: ${String(lost)}, not ${String(gone)}`)
  }

  /** A lease ends: at its time, or because clocks jump. */
  async expire(owner: string, place: number, isJump: boolean): Promise<void> {
    const ref = this.#pick(owner, place)?.claim.ref
    if (ref === undefined || this.#leases.get(ref)?.owner !== owner) return
    if (isJump) await makeDue(this.#ledger, ref)
    else await this.#end(ref, owner)
  }

  async #end(ref: string, owner: string): Promise<void> {
    await advanceClaims(this.#ledger, { owner, leaseMs: 0, by: owner }, { renew: [ref] })
  }

  async expireAll(): Promise<void> {
    for (const [ref, { owner }] of this.#leases) await this.#end(ref, owner)
  }

  /** As when a circuit opens: all that a replica has not begun. */
  async giveBack(owner: string, inMs: number | undefined, through: AccountLedger): Promise<void> {
    const given = this.#handsOf(owner)
    this.#hands = this.#hands.filter((hand) => !given.includes(hand))
    const mine = given.filter(({ claim: { ref } }) => this.#leases.get(ref)?.owner === owner)
    const wait = inMs === undefined ? {} : { inMs }
    const back = given.map(({ claim: { ref, rank } }) => ({ ref, rank, ...wait }))
    await advanceClaims(through, { owner, leaseMs, by: owner }, { giveBack: back })
    for (const { claim } of mine) {
      const { ref } = claim
      const dueSinceMs = this.#leases.get(ref)?.dueSinceMs
      const atMs = Number(await this.#ledger.redis.zscore(this.#dueOf(ref), ref))
      const isInTime =
        inMs === undefined
          ? atMs === (dueSinceMs ?? atMs)
          : Math.abs(atMs - Date.now() - inMs) < 60_000
      if (!isInTime) this.faults.push(`${ref}, given back for ${inMs} ms, is due at ${atMs}`)
    }
  }

  /** Follows a step: what it took out of somebody's hands is nobody's any more, and a lease may be over. */
  async follow(): Promise<void> {
    const stored = await this.#ledger.redis.hgetall(this.#ledger.key('claims'))
    for (const [ref, lease] of this.#leases) {
      if (stored[ref]?.split(' ')[0] !== lease.owner) this.#leases.delete(ref)
      else {
        const atMs = Number(await this.#ledger.redis.zscore(this.#dueOf(ref), ref))
        this.#leases.set(ref, { ...lease, isOver: atMs <= Date.now() })
      }
    }
  }

  #dueOf(ref: string): string {
    return this.#ledger.key('due', ref.split(':').at(-1) ?? '')
  }

  #handsOf(owner: string): InHand[] {
    return this.#hands.filter(({ replica }) => replica === owner)
  }

  #pick(owner: string, place: number): InHand | undefined {
    const hands = this.#handsOf(owner)
    return hands[place % Math.max(1, hands.length)]
  }
}
