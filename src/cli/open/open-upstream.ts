/** Opens the API for one command. */
export { withUpstream } from '../../daemon/for-commands/service.ts'
