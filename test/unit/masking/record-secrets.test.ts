/** What stands between ⟦ and ⟧ is found in the text without them, and nothing else. */
import { describe, expect, test } from 'vitest'
import { recordSpans } from '../../../src/masking/record-secrets.ts'
import { markSpans } from '../../support/marked-spans.ts'

function found(marked: string): string {
  return markSpans(recordSpans, marked)
}

describe('a value is secret where another member of the same record names it', () => {
  test.each([
    '{"name":"password","value":"⟦hunter22⟧"}',
    '{"value":"⟦hunter22⟧","name":"password"}',
    '{"name":"city","value":"hunter22"}',
    "{value: '⟦hunter22⟧', name: 'password'}",
    '{"name":"password","value":"⟦hun}ter22⟧"}',
    '{"name":"password"} value: next',
    '{"value":"of another"},{"name":"password"}',
    '{"name":"password","value":null}',
    'name: "password", value: true',
    String.raw`{'key': 'api_key', 'val': '⟦it\'s⟧'}`,
    String.raw`[{\"name\":\"password\",\"value\":\"⟦hunter22⟧\"},{\"name\":\"city\"}]`,
    String.raw`{\"value\":\"⟦hun\\\"ter\\n22⟧\",\"name\":\"password\"}`,
    '<add key="Password" value="⟦hunter22⟧"/>',
    '<a value="of another"/><add key="Password" value="⟦hunter22⟧"/>',
    'name="password" value=⟦hunter22⟧ host=db1',
    `{"value":"⟦hunter22⟧","name":"password"} ${'x y '.repeat(150)}`,
    `${'x y '.repeat(150)}{"value":"⟦hunter22⟧","name":"password"}`,
  ])('%s', (text) => {
    expect(found(text)).toBe(text)
  })

  test.each([
    'name: DB_PASSWORD\nvalue: ⟦hunter22⟧   ',
    "name: DB_PASSWORD\r\n\tvalue: '⟦hunter22⟧'\r\nname: x",
    'name: DB_PASSWORD\ncontent: ⟦"unclosed⟧',
    'name: DB_PASSWORD\nvalue: ⟦"⟧',
    'name: DB_PASSWORD\nvalue: ""',
    'name: DB_PASSWORD\nvalue: <password>',
    'name: DB_HOST\nvalue: db1',
  ])('on the next line: %j', (text) => {
    expect(found(text)).toBe(text)
  })
})

test.each([
  `define('DB_PASSWORD', '⟦hunter22⟧');`,
  `set( "password" ,  "⟦a⟧" )`,
  `define('DB_HOST', 'db1')`,
  `define('DB_PASSWORD', 'password')`,
  `set('password', '********')`,
])('an argument is secret behind one that names it: %s', (text) => {
  expect(found(text)).toBe(text)
})

test.each([
  '<password> ⟦hunter 22⟧ </password><host>db1</host>',
  '<password><![CDATA[⟦hunter22⟧]]></password>',
  '<password> </password><password></password>',
  '<password>login</password>',
  '<password> login </password>',
  '<string name="password">⟦hunter22⟧</string>',
  '<STRING NAME="Password">⟦hunter22⟧</STRING>',
  '<string name="host">db1</string>',
  '<td>Password:</td> <td class="x"> ⟦hunter22⟧ </td><td>rome</td>',
  '<TD>Password</TD><TD>⟦hunter22⟧</TD>',
  '<b>Login</b> <b>joe</b>',
])('an element is secret whose name, or the cell before it, says so: %s', (text) => {
  expect(found(text)).toBe(text)
})

describe('a column of a table is secret whose header says so', () => {
  test.each([
    'login;password\r\njoe;⟦hunter22⟧\r\nann;⟦letmein1⟧',
    'login|password\n--|--\njoe|⟦hunter22⟧',
    'login;password\njoe\rb;⟦hunter22⟧',
    'login\tpassword\njoe, of rome\t⟦hunter22⟧',
    'password,login\n⟦hunter22⟧,joe',
    'login,,password\njoe,,⟦hunter22⟧',
    'login, "password"\n"Doe, J", " ⟦hunter ""22⟧"" "',
    'login,password\n"Doe,⟦hunter22⟧',
    'city,login,password,token\nrome,joe,⟦hunter22⟧,⟦ab⟧',
    'login,password\njoe,\nann,⟦letmein1⟧',
  ])('%j', (text) => {
    expect(found(text)).toBe(text)
  })

  test.each([
    'city,country\nrome,it',
    'password,token\na1b2,c3d4',
    'the login, the password 5!\nx,y',
    'login,1password\nx,y',
  ])('a line that names no column besides is no header: %j', (text) => {
    expect(found(text)).toBe(text)
  })

  test.each([
    'url,login,password\na.example,joe,⟦hunter,22⟧  ',
    'login,password,city\njoe,⟦hunter22⟧,rome,it',
  ])('a delimiter within the last cell is part of the secret, and none before it: %j', (text) => {
    expect(found(text)).toBe(text)
  })

  test.each([
    'login,password,city\njoe,⟦hunter22⟧',
    'login,password,city,country\njoe,hunter22',
    'login,password\nhunter22',
  ])('the last cell may be missing, and a line of fewer is no row of the table: %j', (text) => {
    expect(found(text)).toBe(text)
  })

  test.each([
    'login,password\njoe,⟦hunter22⟧\n \njoe,rome',
    'login,password\njoe,⟦hunter22⟧\nlogin;token\nann,rome;⟦ab⟧',
  ])('until a line is empty, or the next header begins: %j', (text) => {
    expect(found(text)).toBe(text)
  })
})

test('of a cookie file every value is hidden to its end', () => {
  const text =
    '#HttpOnly_.a.example\tTRUE\t/\tTRUE\t-1\tsid\tab cd\r\nb.example\tFALSE\t/\tFALSE\t0\tq\tx'
  expect(recordSpans(text)).toEqual(
    ['ab cd', 'x'].map((value) => {
      const from = text.lastIndexOf(value)
      return { from, to: from + value.length, hidden: true }
    }),
  )
  expect(recordSpans('a.example\tMAYBE\t/\tFALSE\t1\tsid\tabc')).toEqual([])
})

describe('what is inserted into a column that is called so is secret', () => {
  test.each([
    String.raw`INSERT INTO users (login, password) VALUES ('joe', '⟦hunter22⟧'), ('ann', '⟦let''me\'in⟧');` +
      `\nselect ('a', 'b')`,
    'insert ignore into `db`.`users` (`id`,`password`,`name`) values' +
      " (1,'⟦hunter22⟧','joe'),(2,NULL,'ann'),(3, ⟦hunter3⟧ ,'bob')",
    'insert into u ("pass word") values ("⟦hunter22⟧")',
    "insert into u (login, city) values ('joe','rome')",
    'insert into u (login, password) values (7, ⟦nullhunter22⟧), (8, null)',
    "insert into u (password) values ('⟦a⟧') on duplicate ('b')",
    "insert into u (password) values ('⟦a⟧'), next ('b')",
    "insert into u (password) values ('⟦a⟧'), 'x y', ('b')",
    "insert into u (login, password) values ('insert into v (password) values (''x'')', '⟦a⟧')",
    "insert into u (password) values (''), ('⟦x⟧'), ('",
    "insert into u (login, password) values ('joe', '⟦hunter22⟧",
    "insert into u (password) values ('⟦insert into u (password) values (''x'')⟧')",
    "insert into a (login) values ('x'); insert into u (password) values ('⟦ab⟧')," +
      "('⟦c⟧'); insert into u (login, password) values ('y','⟦z9⟧')",
  ])('%s', (text) => {
    expect(found(text)).toBe(text)
  })

  test.each([
    "insert into users values (1,'joe@a.example','⟦Hunter!22⟧','rome')",
    "insert into users values (1,'joe@a.example','rome')",
    "insert into cities values (1,'joe@a.example','Hunter!22')",
    "insert into members values ('⟦5f4dcc3b5aa765d61d8327deb882cf99⟧','joe','⟦DA39A3EE5E6B4B0D3255BFEF95601890AFD80709⟧')",
  ])('of users without columns, hashes and what is no word beside an address: %s', (text) => {
    expect(found(text)).toBe(text)
  })
})
