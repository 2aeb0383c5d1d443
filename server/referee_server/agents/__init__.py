"""Local agent processes: started, watched and stopped by a small launcher that never imports gRPC."""
