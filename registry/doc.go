// Package registry knows who is connected to one site and who joined which
// channel.
//
// A site holds a Registry of its own, so that no call takes a site's name and
// nothing can reach another site by a forgotten check. A connection enters with
// Add under an unguessable ID, joins channels with Subscribe and is gone, from
// all of them at once, with Remove. Broadcast hands one encoded frame to every
// member of a channel.
//
// A Registry knows nothing of sockets: it hands frames to a Sink, which takes
// one or refuses it but never waits. Nothing here waits either, and no lock is
// held while a Sink is called. Looking up, joining and leaving cost the same
// however many are connected; a broadcast costs its members; a connection that
// leaves costs the channels it joined.
package registry
