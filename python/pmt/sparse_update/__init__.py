"""Back-propagation that updates a part of the network: schemes, and how they are chosen."""
