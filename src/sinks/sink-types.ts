/**
 * The table of sink types. A new type is one row here and in `create-sink.ts`, its configuration
 * and its sink. Beside them only `known-addresses.ts` and the drafts of `init` know some types by
 * name.
 */
import { byType } from '../lib/config/config-fields.ts'
import type { NamedSink, SinkType } from './config.ts'
import { emailType } from './email/config.ts'
import { pagerDutyType } from './pagerduty/config.ts'
import { slackType } from './slack/config.ts'
import { teamsType } from './teams/config.ts'
import { webhookType } from './webhook/config.ts'

const sinkTypes = {
  slack: slackType,
  teams: teamsType,
  email: emailType,
  pagerduty: pagerDutyType,
  webhook: webhookType,
}

type SinkTypes = typeof sinkTypes
type TypeName = keyof SinkTypes

/** A sink of the configuration. */
export type SinkConfig = {
  [Name in TypeName]: NamedSink<SinkTypes[Name]['config']>
}[TypeName]

const schemas = Object.values(sinkTypes).map(({ config }) => config)
type Schema = (typeof schemas)[number]

/** One sink of the file, whose `type` selects the schema. */
export const sinkConfig = byType(schemas as [Schema, ...Schema[]])

/** What the type of a configured sink says about it. */
export function sinkTypeOf({ type }: Pick<SinkConfig, 'type'>): SinkType<SinkConfig> {
  return sinkTypes[type]
}
