/** The feed under which events of Tocsin's own stand; no configured feed can have this name. */
export const ownFeed = '_tocsin'

/** How the uids of its own events begin; the service's may not, or they would take their place. */
export const ownUidPrefixes = { notice: 'notice/tocsin/', canary: 'canary/tocsin/' } as const
