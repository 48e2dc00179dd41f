// Package registry knows who is connected to one site and who joined which
// channel.
//
// A site holds a Registry of its own, so that no call takes a site's name and
// nothing can reach another site by a forgotten check. A connection enters with
// Add under an unguessable ID, joins channels with Subscribe and is gone, from
// all of them at once, with Remove. Broadcast reaches every member of a channel.
//
// A Registry knows nothing of sockets: a sink is what its user says, and so is how
// something is sent to one. Nothing here waits, and no lock is held while
// something is sent. Looking up, joining and leaving cost the same
// however many are connected; a broadcast costs its members; a connection that
// leaves costs the channels it joined.
package registry
