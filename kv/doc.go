// Package kv keeps keys and values in memory for one site, within a limit in
// bytes that it never passes.
//
// A Store is the whole of it: strings, hashes, counters, expiry, eviction,
// locks, and waiting for a change. Keys and values are byte strings of any
// content. Each call is atomic: nobody sees a key with one value's type and
// another's TTL, and no other call half of an MSet. A site has a Store of its
// own, so no call takes a site name.
//
// All keys lie in memory that the caller may share with other processes, laid
// out as layout.go says: they read strings without asking. The files from the
// bottom up: arena.go and runs.go give out that memory, table.go finds keys in
// it, store.go, evict.go and sweep.go decide what stays, and string.go, hash.go,
// counter.go, key.go, expire.go, lock.go and wait.go are what callers want.
// stats.go has the counts, snapshot.go writes it all to a file.
//
// A Server lets clients of Redis reach Stores: serve.go and client.go keep the
// connections, which loop.go answers many at a time and park.go moves there and
// back, resp.go reads and writes the protocol, command.go and its like are the
// commands.
package kv
