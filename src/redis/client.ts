/** The type of a connection to Redis; it needs nothing of the rest. */
import type { Cluster, Redis as IORedis } from 'ioredis'

/** A single server or a Cluster; `health.ts` holds what has to be asked of each node. */
export type Redis = IORedis | Cluster
