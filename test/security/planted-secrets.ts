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

/** Leaked as well, in forms of which a mask could leave a tail, or that it knows by their shape or label. */
export const tails = {
  ampersand: 'BandicootAmpersand19',
  comma: 'BandicootComma20',
  space: 'BandicootSpace21',
  quote: 'BandicootQuote22',
  environment: 'BandicootEnvironment23',
  privateKey: 'BandicootPrivateKey24',
  github: 'BandicootGithub25',
  slack: 'BandicootSlack26',
  jwt: 'BandicootJwt27',
  arrow: 'BandicootArrow28',
  portuguese: 'BandicootSenha29',
  chinese: 'BandicootMima30',
  labelled: 'BandicootLabel31',
  cookieNumber: '4917263548123',
  column: 'BandicootColumn32',
}

/** As leaks show them, a text each. */
export const tailTexts: readonly string[] = [
  `Password: Tr0ub4dor&${tails.ampersand}-horse,${tails.comma} end`,
  `alice@example.com:pass ${tails.space} 123`,
  `Password: "say "hi" ${tails.quote}"`,
  `AWS_SECRET_ACCESS_KEY=${tails.environment}`,
  `-----BEGIN RSA PRIVATE KEY-----\n${tails.privateKey}\nMIIEow==`,
  `push with ghp_${tails.github}0123456789 or xoxb-123456789012-${tails.slack}`,
  `session eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.${tails.jwt}`,
  `password => ${tails.arrow} x`,
  `senha: ${tails.portuguese}, 密码:${tails.chinese}`,
  `url,login,password\nexample.com,joe,${tails.column}`,
]

export const planted = { ...operators, ...leaked, ...tails }
