/** Every probe, by what it needs and in the order of the report. */
import {
  type AccountNeeds,
  keyProbe,
  quotaProbe,
  reachProbe,
  type ReachNeeds,
  serviceProbe,
} from './account-probes.ts'
import type { Probe } from '../../operator/probes/probe.ts'
import {
  layoutProbe,
  ledgerProbe,
  lossProbe,
  redisMemoryProbe,
  type RedisNeeds,
  safetyProbe,
  serverProbe,
} from '../../operator/probes/redis-probes.ts'
import { sinkReachProbe, sinkSendProbe, type SinkNeeds } from '../../operator/probes/sink-probes.ts'

function list<Needs>(...probes: Probe<Needs>[]): readonly Probe<Needs>[] {
  return probes
}

export const probes = {
  /** That Redis can be used, and more. */
  redisServer: list<RedisNeeds>(serverProbe, safetyProbe, redisMemoryProbe),
  redis: list<RedisNeeds>(lossProbe, layoutProbe, ledgerProbe),
  reach: list<ReachNeeds>(reachProbe),
  service: list(serviceProbe),
  key: list<AccountNeeds>(keyProbe),
  account: list<AccountNeeds>(quotaProbe),
  sinkReach: list<SinkNeeds>(sinkReachProbe),
  sinkSend: list<SinkNeeds>(sinkReachProbe, sinkSendProbe),
}
