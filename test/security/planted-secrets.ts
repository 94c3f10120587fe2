/** A secret of every kind. None has a shape by which it could be told from any other word. */

export const operators = {
  apiKey: 'Zanzibar-key-4711-zebra',
  otherApiKey: 'Quagga-key-0815-okapi',
  grantedToken: 'Numbat-token-1234-dugong',
  redisPassword: 'Wombat/redis+5678',
  slackToken: 'T0/B0/MarmotSlackToken24xyz',
  webhookPath: 'TapirPathToken99',
  webhookQuery: 'GibbonQueryToken77',
  signingSecret: 'whsec_TWFuYXRlZU1hbmF0ZWVNYW5hdGVlTWFuYXRlZQ==',
  rotatedSecret: 'Manatee rotated secret 1213',
  authorization: 'Tarsier-authorization-27',
  smtpPassword: 'Ocelot p@ss/word:66',
  proxyPassword: 'Caracal-proxy-31',
  pingPath: 'KinkajouPingToken13',
  mistaken: 'ServalInAWrongPlace52',
}

/** Of the victims. */
export const leaked = {
  highlight: 'Bandicoot-hl-1',
  combo: 'Bandicoot-combo-2',
  markedCombo: 'Bandicoot-marked-3',
  detail: 'Bandicoot-detail-4',
  deepDetail: 'Bandicoot-deep-5',
  autofill: 'Bandicoot-autofill-6',
  cookie: 'Bandicoot-cookie-7',
  cookieHeader: 'Bandicoot-setcookie-8',
  cookieHighlight: 'Bandicoot-cookiehl-9',
  note: 'Bandicoot-note-10',
  tag: 'Bandicoot-tag-11',
  raw: 'Bandicoot-raw-12',
  rawText: 'Bandicoot-rawtext-13',
  rawCookie: 'Bandicoot-rawcookie-14',
  rawUid: 'Bandicoot-rawuid-15',
  url: 'Bandicoot-url-16',
  credential: 'Bandicoot-credential-17',
  identityPair: 'Bandicoot-identity-18',
}

export const planted = { ...operators, ...leaked }
