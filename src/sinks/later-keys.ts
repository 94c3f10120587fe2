/** Keys that sinks for people will have in a later version, with what happens instead. */
export const laterForPeople = {
  digest: 'every event is a message of its own, sent at once',
  fallback: 'what cannot be delivered stays, retried and then dead-lettered',
  reveal: 'leaked credentials are always masked',
  proxy: 'sinks are reached directly',
  ca_file: 'the certificate authorities of the system count',
} as const
