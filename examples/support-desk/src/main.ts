import '@agents/core';
import '@agents/session-sqlite';

process.stdout.write('support desk: nothing here yet\n');
