import { refusal, type Refusal } from './config-fields.ts'

/**
 * What is wrong with an address to which requests go; undefined: nothing. Clear-text http passes
 * only where `allowHttp` says so. The address may hold a token and is never quoted.
 */
export function webAddressProblem(
  input: string,
  allowHttp: (hostname: string) => boolean,
): Refusal | undefined {
  const url = URL.parse(input)
  if (url === null) return refusal('not a URL', 'write it whole, such as https://host.example/path')
  if (url.protocol !== 'https:' && url.protocol !== 'http:') {
    return refusal('not an http address', 'write a URL that begins with https://')
  }
  if (url.username !== '' || url.password !== '') {
    return refusal('holds a user name or a password', 'write the URL without the part before "@"')
  }
  if (url.protocol === 'http:' && !allowHttp(url.hostname)) {
    // only a sink may be refused this machine, and it has a key to allow it
    const orElse = isLoopback(url.hostname) ? ', or set allow_private: true' : ''
    return refusal('not encrypted', `write https:// instead of http://${orElse}`)
  }
  return undefined
}

/** What is wrong with the user or password of an address; they are percent-encoded there. */
export function loginProblem({ username, password }: URL): Refusal | undefined {
  if (!/%(?![0-9a-f]{2})/i.test(username + password)) return undefined
  return refusal('its user or password has a stray %', 'write it as %25')
}

/** Names and addresses that never leave the machine. */
export function isLoopback(hostname: string): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || /^127(\.\d{1,3}){3}$/.test(hostname)
}
