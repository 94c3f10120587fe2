/** Alertmanager beside the daemon, if this machine has one: the same events as alerts, a group for each. */
import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Agent, request } from 'undici'
import { freePort } from '../support/free-port.ts'
import { untilThere } from './called-process.ts'
import { apiKey, sandboxOfOne } from './one-account.ts'
import type { Figures } from './report.ts'
import type { Rig } from './rig.ts'
import { openServiceFeed, post, readPages } from './service-client.ts'

/** Upstream's name, and Debian's. */
const programs = ['alertmanager', 'prometheus-alertmanager']

/** Events a second in pages of ten, from the first page asked for to the last alert at the receiver. */
export async function measureAlertmanager(
  rig: Rig,
  { events }: { events: number },
): Promise<Figures> {
  const program = programs.find((name) => !spawnSync(name, ['--version']).error)
  if (program === undefined) return { alertmanager: 'not installed' }
  const [port, receiver] = [await freePort(), await rig.startReceiver()]
  const file = join(rig.folder, 'alertmanager.yaml')
  writeFileSync(file, JSON.stringify(configOf(receiver.url)))
  const server = rig.startProgram(program, [
    `--config.file=${file}`,
    `--storage.path=${join(rig.folder, 'alertmanager')}`,
    `--web.listen-address=127.0.0.1:${port}`,
    '--cluster.listen-address=',
    '--log.level=error',
  ])
  const dispatcher = new Agent()
  const url = `http://127.0.0.1:${port}`
  const look = (): Promise<true | undefined> => {
    if (server.exitCode !== null) throw new Error(`${program} ended (${server.exitCode})`)
    return isReady(dispatcher, url)
  }
  await untilThere(look, () => `${program} is not ready`)

  const { groupIds, ...options } = sandboxOfOne(1)
  const sandbox = await rig.startSandbox(options)
  await sandbox.call('addEvents', events, { groupIds })
  const service = { url: sandbox.url, apiKey, groupId: groupIds[0]! }
  const readPage = await openServiceFeed(dispatcher, service)
  const beganMs = Date.now()
  for await (const items of readPages(readPage)) {
    const body = JSON.stringify(items.map(toAlert))
    await post(dispatcher, { url: `${url}/api/v2/alerts`, body })
  }
  const seconds = ((await receiver.call('until', events)) - beganMs) / 1000
  server.kill()
  await Promise.all([dispatcher.destroy(), receiver.close()])
  return { alertmanager: events / seconds }
}

function configOf(receiverUrl: string): object {
  const waits = { group_wait: '0s', group_interval: '1h', repeat_interval: '1d' }
  const hook = { url: `${receiverUrl}/hooks/siem`, send_resolved: false }
  return {
    route: { receiver: 'siem', group_by: ['...'], ...waits },
    receivers: [{ name: 'siem', webhook_configs: [hook] }],
  }
}

async function isReady(dispatcher: Agent, url: string): Promise<true | undefined> {
  const answer = await request(`${url}/-/ready`, { dispatcher }).catch(() => undefined)
  await answer?.body.dump()
  return answer?.statusCode === 200 || undefined
}

function toAlert(item: unknown): object {
  const { metadata } = item as { metadata: { uid: string; severity: string } }
  const { uid, severity } = metadata
  return {
    labels: { alertname: 'event', uid, severity },
    annotations: { event: JSON.stringify(item) },
  }
}
