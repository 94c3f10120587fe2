/** The configuration of self-alerts and of the canary. */
import {
  duration,
  flag,
  list,
  name,
  refusal,
  type Rule,
  section,
} from '../../lib/config/config-fields.ts'
import {
  type Outbound,
  outboundKeys,
  outboundRules,
  readOutbound,
} from '../../lib/config/outbound-config.ts'
import { type Secret, secretFromSection, secretKeys, secretRule } from '../../lib/config/secret.ts'
import { sectionAddressProblem } from '../../lib/config/web-address.ts'

export interface SelfAlertsConfig {
  /** The operators' sink. */
  sink: string
  /**
   * The sink used while the first takes nothing or is itself in trouble; undefined: see
   * `orderTargets`.
   */
  fallback: string | undefined
  /** How long a condition lasts before it is alerted. */
  afterMs: number
}

export interface CanaryConfig {
  everyMs: number
  sinks: string[]
  /** The dead-man switch pinged for each canary that arrived; undefined: none. */
  ping: (Outbound & { url: Secret; allowPrivate: boolean }) | undefined
}

const differentSinks: Rule = ({ sink, fallback }) =>
  fallback === undefined || fallback !== sink
    ? []
    : [
        {
          path: ['fallback'],
          ...refusal('the same sink again', 'name another, or remove the line'),
        },
      ]

export const selfAlertsConfig = section(
  {
    sink: name('The sink that is told when Tocsin itself is in trouble, and when that is over.'),
    fallback: name(
      'The sink that is told while the first takes nothing, or is in trouble itself. Default: the fallback, or any other.',
    ).optional(),
    after: duration(
      'How long trouble lasts before it is reported. A refused key and a sink that is gone are reported at once.',
    ).prefault('5m'),
  },
  {
    describe: 'Tells operators of trouble: once when it begins, once when it is over.',
    rules: [differentSinks],
  },
).transform(({ sink, fallback, after }): SelfAlertsConfig => ({ sink, fallback, afterMs: after }))

export const canaryConfig = section(
  {
    every: duration('Time between two test events.', '1m').prefault('1h'),
    sinks: list(name('A sink.'), 'Sinks that get the test event.', 'write names of sinks'),
    ...secretKeys('ping', 'Address of a dead-man switch, asked for once all sinks took the event.'),
    allow_private: flag('Let `ping` be private or loopback, over http too.').prefault(false),
    ...outboundKeys,
  },
  {
    describe: 'A marked test event that goes the whole way, again and again.',
    rules: [
      secretRule('ping', { required: false, check: sectionAddressProblem }),
      ...outboundRules,
    ],
  },
).transform((file): CanaryConfig => {
  const url = secretFromSection(file, 'ping')
  const ping = url && { url, allowPrivate: file.allow_private, ...readOutbound(file) }
  return { everyMs: file.every, sinks: file.sinks, ping }
})
