/** Where Debian's package puts the browser. */
export const executablePath = '/usr/bin/chromium'
