/** Loaded into a daemon: tells its parent what it uses, and ends with it. */
process.on('message', () => {
  process.send?.({ cpu: process.cpuUsage(), rssBytes: process.memoryUsage.rss() })
})
process.on('disconnect', () => process.exit(1))
process.channel?.unref()
