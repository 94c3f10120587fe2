/**
 * A key of the file as it may stand in a message. Where a space after ":" is missing, or an address
 * stands where a name belongs, the "key" holds a secret: of such a one only its first word is said.
 */
export function sayableKey(key: string): string {
  if (/^(?:<<|\$\{\w{1,40}\}|[\w-]{0,64})$/.test(key)) return key
  const [word = ''] = /^[\w-]{1,20}(?=[:= ])/.exec(key) ?? []
  return `${word}…`
}
