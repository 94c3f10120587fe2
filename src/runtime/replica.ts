import { randomBytes } from 'node:crypto'

/** Names this process: in the stories of deliveries, and on the jobs in its hands. Starts with its id. */
export const replica = `${process.pid}-${randomBytes(3).toString('hex')}`
