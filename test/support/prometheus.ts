/** A real Prometheus on loopback: a folder and a port of its own, gone afterwards. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { stringify } from 'yaml'
import { freePort } from './free-port.ts'

export interface TestPrometheus {
  url: string
  /** The result of an instant query; throws what Prometheus says against it. */
  query(expr: string): Promise<Sample[]>
  /** How many series a selector finds. */
  countSeries(selector: string): Promise<number>
  /** How many rules wait for their first evaluation, and what was said of those that failed. */
  rules(): Promise<{ names: string[]; waiting: number; failed: string[] }>
  stop(): Promise<void>
}

export interface Sample {
  metric: Record<string, string>
  value?: [number, string]
}

export interface PrometheusOptions {
  /** Scraped each second as job `tocsin`, e.g. `127.0.0.1:9464`. */
  target: string
  rulesFile: string
}

export async function startPrometheus(options: PrometheusOptions): Promise<TestPrometheus> {
  const folder = mkdtempSync(join(tmpdir(), 'tocsin-prometheus-'))
  const address = `127.0.0.1:${await freePort()}`
  writeConfig(folder, options)
  const args = [
    `--config.file=${join(folder, 'prometheus.yml')}`,
    `--storage.tsdb.path=${join(folder, 'data')}`,
    `--web.listen-address=${address}`,
  ]
  const child = spawn('prometheus', args, { stdio: ['ignore', 'ignore', 'pipe'] })
  const url = `http://${address}`
  const said = linesOf(child)
  await ready(child, url, said)
  return {
    url,
    query: async (expr) => (await ask<{ result: Sample[] }>(url, 'query', { query: expr })).result,
    countSeries: async (selector) =>
      (await ask<unknown[]>(url, 'series', { 'match[]': selector })).length,
    async rules() {
      const { groups } = await ask<{ groups: { rules: Rule[] }[] }>(url, 'rules', {})
      const rules = groups.flatMap((group) => group.rules)
      const failed = rules.filter(({ health }) => health === 'err')
      return {
        names: rules.map(({ name }) => name),
        waiting: rules.filter(({ health }) => health === 'unknown').length,
        failed: failed.map(({ name, lastError = '' }) => `${name}: ${lastError}`),
      }
    },
    async stop() {
      await end(child)
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

interface Rule {
  name: string
  health: 'ok' | 'err' | 'unknown'
  lastError?: string
}

function writeConfig(folder: string, { target, rulesFile }: PrometheusOptions): void {
  copyFileSync(rulesFile, join(folder, 'rules.yaml'))
  const config = {
    global: { scrape_interval: '1s', evaluation_interval: '1s' },
    rule_files: ['rules.yaml'],
    scrape_configs: [{ job_name: 'tocsin', static_configs: [{ targets: [target] }] }],
  }
  writeFileSync(join(folder, 'prometheus.yml'), stringify(config))
}

function linesOf(child: ChildProcess): () => string {
  let said = ''
  child.stderr!.on('data', (chunk) => (said += String(chunk)))
  return () => said
}

async function ready(child: ChildProcess, url: string, said: () => string): Promise<void> {
  for (let tries = 0; tries < 600; tries += 1) {
    if (child.exitCode !== null) break
    const answer = await fetch(`${url}/-/ready`).catch(() => undefined)
    if (answer?.ok) return
    await sleep(50)
  }
  await end(child)
  throw new Error(`prometheus did not become ready:\n${said()}`)
}

async function ask<Answer>(
  url: string,
  path: string,
  params: Record<string, string>,
): Promise<Answer> {
  const answer = await fetch(`${url}/api/v1/${path}?${String(new URLSearchParams(params))}`)
  const body = (await answer.json()) as { status: string; error?: string; data: Answer }
  if (body.status !== 'success') throw new Error(body.error)
  return body.data
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const gone = once(child, 'exit')
  child.kill('SIGKILL')
  await gone
}
