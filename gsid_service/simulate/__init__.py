"""The control plane, simulated: topologies, OSPF, BGP with route reflection, designs and faults."""
