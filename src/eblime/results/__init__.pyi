from eblime.results.citations import Citations as Citations
from eblime.results.comparison import Comparison as Comparison
from eblime.results.export import to_shap as to_shap
from eblime.results.indices import Interactions as Interactions
from eblime.results.prediction import Prediction as Prediction
from eblime.results.reasons import Reason as Reason
