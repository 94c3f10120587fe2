import { isIP } from 'node:net'

/**
 * Whether a request's `Host`, without its port, may be a name of this server. A web page whose name was made
 * to lead here (DNS rebinding) sends that name, which is public and so has a dot. An address, and a name
 * without a dot such as a container's, cannot be one; `given`: further names.
 */
export function ownHosts(given: readonly string[]): (host: string) => boolean {
  const names = new Set(given.map((name) => name.toLowerCase()))
  return (host) => {
    const name = host.toLowerCase().replace(/^\[(.*)\]$/, '$1')
    return isIP(name) !== 0 || !name.includes('.') || names.has(name)
  }
}
