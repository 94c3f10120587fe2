/** A certificate authority of its own and what it signs, made when a test runs (X.509 v3, P-256). */
import { generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** PEM texts, and files that hold them. */
export interface Identity {
  cert: string
  key: string
  certFile: string
  keyFile: string
}

export interface Authority {
  /** PEM of the authority itself, and its file. */
  cert: string
  file: string
  /** A certificate for the name, localhost and 127.0.0.1; for servers and clients. */
  issue(name: string): Identity
  /** Removes the files. */
  remove(): void
}

export function createAuthority(name = 'Company Root'): Authority {
  const folder = mkdtempSync(join(tmpdir(), 'authority-'))
  const keys = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const issuer = { name, key: keys.privateKey }
  const cert = certificate({ name, publicKey: keys.publicKey, isAuthority: true }, issuer)

  function write(fileName: string, content: string): string {
    const path = join(folder, fileName)
    writeFileSync(path, content, { mode: 0o600 })
    return path
  }

  return {
    cert,
    file: write('ca.pem', cert),
    issue(subject) {
      const own = generateKeyPairSync('ec', { namedCurve: 'P-256' })
      const issued = certificate({ name: subject, publicKey: own.publicKey }, issuer)
      const key = own.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
      const [certFile, keyFile] = [write(`${subject}.pem`, issued), write(`${subject}.key`, key)]
      return { cert: issued, key, certFile, keyFile }
    },
    remove: () => rmSync(folder, { recursive: true }),
  }
}

interface Subject {
  name: string
  publicKey: KeyObject
  isAuthority?: boolean
}

function certificate(subject: Subject, issuer: { name: string; key: KeyObject }): string {
  const year = new Date().getUTCFullYear()
  const time = (at: number): Buffer => der(0x18, Buffer.from(`${at}0101000000Z`))
  const body = sequence(
    der(0xa0, der(0x02, Buffer.from([2]))), // version 3
    der(0x02, Buffer.concat([Buffer.from([1]), randomBytes(8)])), // serial number
    ecdsaWithSha256,
    nameOf(issuer.name),
    sequence(time(year - 1), time(year + 10)),
    nameOf(subject.name),
    subject.publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, sequence(...extensionsOf(subject))),
  )
  const signature = sign('sha256', body, issuer.key)
  const whole = sequence(body, ecdsaWithSha256, der(0x03, Buffer.from([0]), signature))
  const lines = whole.toString('base64').match(/.{1,64}/g) ?? []
  return ['-----BEGIN CERTIFICATE-----', ...lines, '-----END CERTIFICATE-----', ''].join('\n')
}

function extensionsOf({ name, isAuthority = false }: Subject): Buffer[] {
  const extension = (id: number, value: Buffer): Buffer =>
    sequence(objectId(0x55, 0x1d, id), der(0x04, value))
  if (isAuthority) return [extension(19, sequence(der(0x01, Buffer.from([0xff]))))]
  const names = [name, 'localhost'].map((host) => der(0x82, Buffer.from(host)))
  const hosts = [...names, der(0x87, Buffer.from([127, 0, 0, 1]))]
  return [extension(17, sequence(...hosts))] // subjectAltName
}

const ecdsaWithSha256 = sequence(objectId(0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02))

function nameOf(commonName: string): Buffer {
  const value = sequence(objectId(0x55, 0x04, 0x03), der(0x0c, Buffer.from(commonName)))
  return sequence(der(0x31, value))
}

function sequence(...parts: Buffer[]): Buffer {
  return der(0x30, ...parts)
}

function objectId(...bytes: number[]): Buffer {
  return der(0x06, Buffer.from(bytes))
}

/** One element of DER: tag, length and content. */
function der(tag: number, ...parts: Buffer[]): Buffer {
  const content = Buffer.concat(parts)
  const { length } = content
  const bytes = [length >> 8, length & 0xff].slice(length < 0x100 ? 1 : 0)
  const size = length < 0x80 ? [length] : [0x80 + bytes.length, ...bytes]
  return Buffer.concat([Buffer.from([tag, ...size]), content])
}
