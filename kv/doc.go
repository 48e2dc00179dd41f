// Package kv keeps keys and values in memory for one site, within a limit in
// bytes that it never passes.
//
// A Store is the whole of it: strings, hashes, counters, expiry, eviction,
// locks, and waiting for a change. Keys and values are byte strings of any
// content. Everything that a Store does to a key is atomic: nobody sees a key
// with one value's type and another's TTL, or half of an MSet. A site has a
// Store of its own, so no call takes a site name.
//
// Strings, with their TTL, lie in memory that the caller may share with other
// processes, laid out as layout.go says: they read them without asking.
package kv
