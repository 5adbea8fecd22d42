"""A Fisher layer with a linear head as one operation: z_v = Σ_j W_j φ_vj, and the gradients."""
