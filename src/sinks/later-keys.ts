/** Keys that sinks for people will have in a later version, with what happens instead. */
export const laterForPeople = {
  proxy: 'sinks are reached directly',
  ca_file: 'the certificate authorities of the system count',
} as const
